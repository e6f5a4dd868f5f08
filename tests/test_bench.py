"""The benches: each has a floor, none is forgotten, and those of sessions run at all."""

import asyncio
import importlib
import os
import sys
from pathlib import Path

import pytest

from bench import __main__ as benches
from bench import (
    api,
    audit,
    backtest,
    conversation,
    fleet_simulation,
    host_kill,
    session,
    size,
    waiting,
)
from bench.__main__ import existing
from bench.table import Row, eased
from cueline.actors.presence import presence_of
from cueline.deciders.fleet import Range
from cueline.stores import MemoryPresence
from cueline.testing.clock import FakeClock

FOLDER = Path(__file__).parent.parent / "bench"


@pytest.mark.parametrize("name", existing())
def test_a_bench_says_what_its_floor_is(name):
    bench = importlib.import_module(f"bench.{name}")

    assert callable(bench.measure)
    assert "floor" in bench.__doc__.lower()


def test_no_bench_is_forgotten():
    paths = [*FOLDER.glob("*.py"), *FOLDER.glob("*/__init__.py")]
    files = [path for path in paths if "def measure(" in path.read_text()]
    names = [path.parent.name if path.stem == "__init__" else path.stem for path in files]

    assert sorted(existing()) == sorted(names)


@pytest.mark.parametrize(
    ("row", "kept"),
    [
        (Row("told only", 3.0, "s"), True),
        (Row("high enough", 70_000.0, "events/s", "≥ 70,000"), True),
        (Row("too low", 69_999.0, "events/s", "≥ 70,000"), False),
        (Row("quick enough", 0.3, "s", "≤ 0.3"), True),
        (Row("ratio", 1.0, "turns/s", "≥ 4 ×", 4.1), True),
        (Row("ratio too low", 9.0, "turns/s", "≥ 4 ×", 3.9), False),
    ],
)
def test_a_floor_bounds_the_value_or_the_ratio(row, kept):
    assert kept == row.kept


@pytest.mark.parametrize(
    "raised", [StopIteration(), SystemExit("the peers are not installed")], ids=["bug", "no peers"]
)
def test_a_bench_that_fails_leaves_the_rows_of_the_others(raised, monkeypatch, capsys):
    def fail():
        raise raised

    monkeypatch.setattr(backtest, "measure", fail)
    monkeypatch.setattr(session, "measure", lambda: [Row("turns", 12.0, "turns/s")])
    monkeypatch.setattr(sys, "argv", ["bench", "backtest", "session"])

    status = benches.main()

    told = capsys.readouterr()
    assert 1 == status
    assert "12 turns/s" in told.out
    assert f"no rows of backtest: {raised or 'StopIteration'}" in told.err


def test_the_page_has_the_rows_of_one_run_and_names_its_commit():
    rows = {"session": [Row("turns", 12.0, "turns/s")]}

    page = benches.page(rows, {"peers": "they are not installed"}, "0a1b2c3d")

    assert "come from one run at 0a1b2c3d" in page
    assert 1 == page.count("turns/s")
    assert "No rows of `peers`: they are not installed." in page


@pytest.mark.parametrize("name", benches.SAMPLED)
def test_a_sampled_bench_has_a_short_round(name):
    assert callable(importlib.import_module(f"bench.{name}").sample)


@pytest.mark.parametrize(
    ("floor", "half"),
    [("≥ 0.30 ×", "≥ 0.15 ×"), ("≤ 5.0", "≤ 10"), ("≥ 70,000", "≥ 35000"), ("", "")],
)
def test_a_short_round_must_keep_half_of_the_floor(floor, half):
    assert half == eased(Row("figure", 1.0, "s", floor)).floor


def test_a_line_of_code_is_no_comment_docstring_or_import(tmp_path):
    (tmp_path / "room").mkdir()
    (tmp_path / "room/file.py").write_text(
        '''"""What it is."""

import os
from a import (
    b,
)

# Why.
NAME = "one"
"""What the name means."""


def whole() -> str:
    """Return it."""
    return """two
lines"""
'''
    )

    files, lines = size.sizes(tmp_path)

    assert ({"room": 1}, {"room": 4}) == (dict(files), dict(lines))


async def test_the_bench_that_kills_a_host_waits_until_it_is_on_the_board():
    clock = FakeClock()
    board = MemoryPresence(clock)
    looking = asyncio.create_task(host_kill.host_on(board, clock))
    await clock.settle()

    await board.beat(presence_of("host"))
    await clock.advance(host_kill.LOOK_SECONDS)

    assert os.getpid() == await looking


async def test_the_bench_holds_a_conversation(tmp_path):
    assert await conversation.play(tmp_path / "log.db", turns=1) > 0


async def test_the_bench_holds_several_at_once(tmp_path):
    assert await session.play(tmp_path / "log.db", sessions=2, turns=1, warm=1) > 0


@pytest.mark.parametrize("wait", [api.result, api.events])
async def test_the_bench_waits_through_the_api(tmp_path, wait):
    assert await api.ask(tmp_path, "inline", sessions=2, turns=1, warm=1, wait=wait) > 0


async def test_the_bench_records_a_conversation_that_can_be_loaded(tmp_path):
    async with conversation.open_log(tmp_path / "log.db") as log:
        await conversation.record(log, turns=1)

        assert 3 == len((await conversation.loaded(log, "owner")).prompt.messages)


async def test_the_bench_has_sessions_wait_and_wakes_them(tmp_path, monkeypatch):
    # I12, I14
    monkeypatch.chdir(tmp_path)

    (before, _, after), seconds = await waiting.weighed(sessions=4, woken=2, warm=2)

    assert after.processes <= before.processes
    assert after.tasks <= before.tasks
    assert after.files <= before.files
    assert 2 == len(seconds)


def test_the_bench_tries_a_policy_on_a_past(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(backtest, "TURNS", 3)

    (row,) = backtest.measure()

    assert row.value > 0


async def test_the_bench_simulates_a_fleet_that_has_all_again_after_a_loss(monkeypatch):
    small = {"NODES": 20, "RUNNERS": 40, "WAITING": 100, "RUNNING": 50, "LOST": 2, "FEW": 2}
    for name, number in {**small, "MANY": 4}.items():
        monkeypatch.setattr(fleet_simulation, name, number)
    wanted = {
        fleet_simulation.HOSTS_WANTED: Range(18, 20),
        fleet_simulation.RUNNERS_WANTED: Range(40, 40),
    }
    monkeypatch.setattr(fleet_simulation, "WANTED", wanted)
    simulation = fleet_simulation.Simulation()
    await simulation.until_driven()

    await simulation.lose_nodes()

    assert (18, 40) == (len(simulation.fleet.there), len(simulation.fleet.runners))
    assert 0 == simulation.undriven()


def test_the_bench_fills_read_models_and_finds_in_them(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(audit, "EVENTS", 400)

    rows = audit.measure()

    assert ["events/s"] == [row.unit for row in rows if not row.floor]
    assert all(row.kept for row in rows)
