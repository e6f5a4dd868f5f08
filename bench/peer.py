"""Runs a peer in a separate process and environment; its rounds come between cueline's."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PYTHON = ROOT / ".venv-bench/bin/python"

Answer = Mapping[str, Any]
Round = Callable[..., Answer]


class Peer:
    """A running process of a peer."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.version: str = self._read()["version"]

    def run(self, **asked: Any) -> Answer:
        """Run one round, and return its measurements."""
        assert self._process.stdin is not None, "it was started with pipes"
        self._process.stdin.write(json.dumps(asked) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Answer:
        assert self._process.stdout is not None, "it was started with pipes"
        line = self._process.stdout.readline()
        if not line:
            sys.exit("a peer has died; `make bench` installs all of them")
        answer: Answer = json.loads(line)
        return answer


@contextmanager
def peer(module: str) -> Iterator[Peer]:
    """Start the peer of *module*."""
    if not PYTHON.exists():
        sys.exit("the peers are not installed; `make bench` does it")
    command = [str(PYTHON), "-m", module]
    with subprocess.Popen(
        command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        try:
            yield Peer(process)
        finally:
            process.kill()


def serve(version: str, round_: Round) -> None:
    """Run the loop of a peer's process: one round for every line on stdin."""
    # Whatever a library prints must not be taken for an answer.
    answers, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps({"version": version}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(round_(**json.loads(line))), file=answers, flush=True)
