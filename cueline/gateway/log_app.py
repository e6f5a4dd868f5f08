"""The gateway of a log as an ASGI app of its own, which opens the log by itself."""

import asyncio
from contextlib import AsyncExitStack

from starlette.types import ASGIApp, Receive, Scope, Send

from cueline.client.runtime import On, open_runtime
from cueline.errors import CuelineError
from cueline.events.log_url import LogName
from cueline.gateway.api import app_of
from cueline.gateway.problem import problem_of


class LogApp:
    """An ASGI app: alone under a server, mounted below a path of another app, or in Ray Serve.

    It opens the log when a server starts it. A mounted app is not told of the start: it opens
    the log at the first request, and `aclose` closes it.
    """

    def __init__(self, log: LogName, token: str | None, on: On) -> None:
        self._log, self._token, self._on = log, token, on
        self._app: ASGIApp | None = None
        self._opening = asyncio.Lock()
        self._open = AsyncExitStack()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or the server that starts and ends the app."""
        if scope["type"] == "lifespan":
            await self._live(receive, send)
            return
        try:
            opened = await self._opened()
        except CuelineError as error:
            await problem_of(error)(scope, receive, send)
            return
        await opened(scope, receive, send)

    async def aclose(self) -> None:
        """Close the log: sessions that run here rest."""
        async with self._opening:
            self._app = None
            await self._open.aclose()

    async def _opened(self) -> ASGIApp:
        async with self._opening:
            if self._app is None:
                runtime = open_runtime(self._log, on=self._on)
                client = await self._open.enter_async_context(runtime)
                self._app = app_of(client, token=self._token, hosts=None)
            return self._app

    async def _live(self, receive: Receive, send: Send) -> None:
        await receive()
        try:
            await self._opened()
        except CuelineError as error:
            await send({"type": "lifespan.startup.failed", "message": str(error)})
            return
        await send({"type": "lifespan.startup.complete"})
        await receive()
        await self.aclose()
        await send({"type": "lifespan.shutdown.complete"})


def app(log: LogName, *, token: str | None = None, on: On = "auto") -> LogApp:
    """Return the gateway of a log, to run under any ASGI server or to mount in another app.

    Args:
        log: the log's path or URL.
        token: a token that counts beside those of the log, with all rights of this process's user.
        on: where sessions run: see `open_runtime`.
    """
    return LogApp(log, token, on)
