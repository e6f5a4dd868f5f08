"""The way in over the network: the HTTP API of a log, as an ASGI app."""

from cueline.gateway.api import app

__all__ = ["app"]
