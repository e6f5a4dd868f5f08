"""The server of `server.py` over HTTP: `http_server.py PORT`."""

import sys

from tests.mcp_client.server import app

if __name__ == "__main__":
    app.run("streamable-http", port=int(sys.argv[1]))
