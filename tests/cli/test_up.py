"""What `up` says while it keeps a log up."""

import asyncio
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace

import pytest

from cueline import on_ray
from cueline.cli import up
from cueline.errors import ClusterError


class Troubled:
    """Tells one thing, then loses its cluster."""

    record = SimpleNamespace(
        keeper=SimpleNamespace(pid=7), address="10.0.0.5:6379", version="0.1.0"
    )
    found = 0

    def __init__(self):
        self._lines = [["\x1b[2Jtold \u202etxt"]]

    async def watch(self):
        if not self._lines:
            raise ClusterError("ray", "\x1b[2Jgone \u202etxt")
        return self._lines.pop()

    async def look(self):
        await asyncio.Event().wait()


async def test_what_up_repeats_moves_no_cursor(monkeypatch, capsys):
    @asynccontextmanager
    async def keep_up(*_, **__):
        yield Troubled()

    monkeypatch.setattr(on_ray, "keep_up", keep_up)
    plan = up.Plan(
        log=Path("log.db"), address=None, hosts=1, runners=1, recover="all", grace_seconds=1.0
    )

    with pytest.raises(ClusterError):
        await up._keep(plan, None, as_json=False)

    said = capsys.readouterr().err.splitlines()
    assert ["\\x1b[2Jtold \\x202etxt", "ray: \\x1b[2Jgone \\x202etxt"] == said[1:3]
