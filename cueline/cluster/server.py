"""Keeps the HTTP server of a log running beside the other actors of `cueline up`."""

import asyncio
import json
import socket
import subprocess
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from contextlib import suppress
from inspect import isawaitable
from pathlib import Path
from threading import Event, Thread
from typing import Final

import ray

from cueline.actors.runner_relay import RunnerRelay, serve_relay
from cueline.clock import boot_seconds
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
        # Then the port may still be held by the server of the actor before.
        self._returns = ray.get_runtime_context().was_current_actor_reconstructed
        # Not in `start`: where Ray starts the actor again, nobody calls it.
        self._said: deque[str] = deque()
        self._relay = RunnerRelay(boot_seconds)
        self._loop = asyncio.get_running_loop()
        Thread(target=self._keep, daemon=True).start()

    async def start(self) -> str:
        """Return the URL of the server, once it accepts requests.

        Raises:
            ClusterError: it does not start; the message has its output.
        """
        return await asyncio.wrap_future(self._url)

    async def relay(self, method: str, *asked: object) -> object:
        """Return the answer of a method of the server's `RunnerRelay`."""
        answer = getattr(self._relay, method)(*asked)
        return await answer if isawaitable(answer) else answer

    def _keep(self) -> None:
        while True:
            with suppress(OSError):
                self._run()
            if not self._url.done() and not self._returns:
                reason = "".join(self._said).strip() or "it ended before it listened"
                self._url.set_exception(ClusterError("the server", reason))
                return
            Event().wait(_AGAIN_SECONDS)

    def _run(self) -> None:
        pipe = subprocess.PIPE
        ours, theirs = socket.socketpair()
        with subprocess.Popen(  # noqa: S603 - our own command
            [*self._words, "--relay", str(theirs.fileno())],
            stdin=pipe,
            stdout=pipe,
            stderr=pipe,
            text=True,
            cwd=self._folder,
            pass_fds=[theirs.fileno()],
        ) as process:
            theirs.close()
            # Kept, because the loop does not keep a task that waits for the other end.
            relaying = serve_relay(self._relay, ours)
            self._relaying = asyncio.run_coroutine_threadsafe(relaying, self._loop)
            assert process.stdout is not None, "it is a pipe"
            assert process.stderr is not None, "it is a pipe"
            told = process.stdout.readline()
            if told and not self._url.done():
                self._url.set_result(json.loads(told)["url"].removesuffix("/v1"))
            self._said = deque(process.stderr, maxlen=_LINES)
