"""A peer in a process and an environment of its own; its rounds are run between ours."""

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
    """A peer that is ready."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process
        self.version: str = self._read()["version"]

    def run(self, **asked: Any) -> Answer:
        """Have it do one round, and return what it measured."""
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
    """Start the peer that *module* speaks for."""
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
    """Be a peer: do a round for every line that comes in."""
    # Whatever a library prints must not be taken for an answer.
    answers, sys.stdout = sys.stdout, sys.stderr
    print(json.dumps({"version": version}), file=answers, flush=True)
    for line in sys.stdin:
        print(json.dumps(round_(**json.loads(line))), file=answers, flush=True)
