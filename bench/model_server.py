"""A server with Anthropic's protocol, for a separate process: `python -m bench.model_server`.

The name of the model defines the reply: `10x50` is ten pieces, one each 50 ms. `10x0t40` is ten
pieces without delay, with a call of `look_up` in each of the first forty turns.
Each piece is the time at which it was sent, in nanoseconds.
"""

import asyncio
import json
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

HEAD = b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n"
USAGE = {"input_tokens": 1000, "output_tokens": 200}


def event(kind: str, **data: object) -> bytes:
    """Return one event of a stream, as a chunk."""
    text = f"event: {kind}\ndata: {json.dumps({'type': kind, **data})}\n\n".encode()
    return f"{len(text):x}\r\n".encode() + text + b"\r\n"


async def answer(body: dict[str, object], writer: asyncio.StreamWriter) -> None:
    """Stream the reply to *body*."""
    pieces, _, rest = str(body["model"]).partition("x")
    milliseconds, _, turns = rest.partition("t")
    messages = body["messages"]
    assert isinstance(messages, list)
    turn = sum(message["role"] == "assistant" for message in messages)
    calls = turn < int(turns or 0)
    message = {"id": "m", "type": "message", "role": "assistant", "model": "bench", "content": []}
    message |= {"stop_reason": None, "stop_sequence": None, "usage": USAGE}
    writer.write(HEAD + event("message_start", message=message))
    block: dict[str, object] = {"type": "text", "text": ""}
    writer.write(event("content_block_start", index=0, content_block=block))
    for _ in range(int(pieces)):
        if int(milliseconds):
            await asyncio.sleep(int(milliseconds) / 1000)
        delta = {"type": "text_delta", "text": f"{time.time_ns()} "}
        writer.write(event("content_block_delta", index=0, delta=delta))
        if writer.is_closing():  # nobody reads any more
            return
    writer.write(event("content_block_stop", index=0))
    if calls:
        block = {"type": "tool_use", "id": f"c{turn}", "name": "look_up", "input": {}}
        writer.write(event("content_block_start", index=1, content_block=block))
        delta = {"type": "input_json_delta", "partial_json": '{"query": "000001"}'}
        writer.write(event("content_block_delta", index=1, delta=delta))
        writer.write(event("content_block_stop", index=1))
    end = {"stop_reason": "tool_use" if calls else "end_turn", "stop_sequence": None}
    writer.write(event("message_delta", delta=end, usage=USAGE))
    writer.write(event("message_stop") + b"0\r\n\r\n")
    await writer.drain()


async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answer the requests of one connection."""
    try:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).lower()
            length = int(head.split(b"content-length:")[1].split(b"\r\n")[0])
            await answer(json.loads(await reader.readexactly(length)), writer)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()


async def main() -> None:
    """Print the port, and serve until the process ends."""
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1024, limit=2**24)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


@contextmanager
def model_server() -> Iterator[str]:
    """Run the server, and return its URL."""
    command = [sys.executable, "-m", "bench.model_server"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            yield f"http://127.0.0.1:{process.stdout.readline().strip()}"
        finally:
            process.kill()


if __name__ == "__main__":
    asyncio.run(main())
