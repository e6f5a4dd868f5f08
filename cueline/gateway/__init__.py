"""The way in for other programs: the HTTP API of a log, as an ASGI app.

The pages, the MCP endpoint and the protocol of editors are to be here, too.
"""

from cueline.gateway.api import app

__all__ = ["app"]
