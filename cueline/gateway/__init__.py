"""The way in for other programs and people: HTTP, pages, MCP, and the protocol of editors.

`app` is the gateway of a log, as an ASGI app.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cueline.gateway.log_app import app

__all__ = ["app"]


def __getattr__(name: str) -> object:
    """Import `app` when it is asked for: editors need no FastAPI."""
    if name != "app":
        raise AttributeError(f"module 'cueline.gateway' has no attribute {name!r}")
    from cueline.gateway.log_app import app  # noqa: PLC0415 - see above

    return app
