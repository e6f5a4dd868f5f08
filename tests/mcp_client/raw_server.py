"""An MCP server of the era before 2026-07-28 without the SDK, whose results are invalid."""

import json
import sys

TOOLS = [{"name": "odd", "inputSchema": {"type": "object"}}]
RESULTS = {
    "initialize": {
        "protocolVersion": "2025-06-18",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "raw", "version": "1"},
    },
    "tools/list": {"tools": TOOLS},
    "tools/call": {"content": "not a list"},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    answer = {"jsonrpc": "2.0", "id": message["id"]}
    if message["method"] in RESULTS:
        answer["result"] = RESULTS[message["method"]]
    else:
        answer["error"] = {"code": -32601, "message": "unknown method"}
    sys.stdout.write(f"{json.dumps(answer)}\n")
    sys.stdout.flush()
