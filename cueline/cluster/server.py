"""Keeps the HTTP server of a log running beside the other actors of `cueline up`."""

import asyncio
import json
import subprocess
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from threading import Event, Thread
from typing import Final

from cueline.errors import ClusterError

START_SECONDS: Final = 30.0
_AGAIN_SECONDS: Final = 1.0
_LINES: Final = 20
"""The kept lines of what the command said last."""


class ServerActor:
    """Runs the command of the server, and starts it again when it has ended.

    The command ends when its standard input does, and so with this actor, however that ends.
    """

    def __init__(self, words: Sequence[str], folder: str) -> None:
        self._words = words
        self._folder = folder if Path(folder).is_dir() else None  # it may be another machine
        self._url: Future[str] = Future()
        # Not in `start`: where Ray starts the actor again, nobody calls it.
        Thread(target=self._keep, daemon=True).start()

    async def start(self) -> str:
        """Return the URL of the server, once it accepts requests.

        Raises:
            ClusterError: it does not start; the message has its output.
        """
        return await asyncio.wrap_future(self._url)

    def _keep(self) -> None:
        while True:
            with suppress(OSError):
                self._run()
            if self._url.done() and self._url.exception() is not None:
                return  # it has never listened
            Event().wait(_AGAIN_SECONDS)

    def _run(self) -> None:
        pipe = subprocess.PIPE
        with subprocess.Popen(  # noqa: S603 - our own command
            self._words, stdin=pipe, stdout=pipe, stderr=pipe, text=True, cwd=self._folder
        ) as process:
            assert process.stdout is not None, "it is a pipe"
            assert process.stderr is not None, "it is a pipe"
            told = process.stdout.readline()
            if told and not self._url.done():
                self._url.set_result(json.loads(told)["url"].removesuffix("/v1"))
            said = deque(process.stderr, maxlen=_LINES)
            if not self._url.done():
                reason = "".join(said).strip() or "it ended before it listened"
                self._url.set_exception(ClusterError("the server", reason))
