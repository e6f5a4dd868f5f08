"""What a call will cost, as the tool itself estimates it (004-009, 004-024)."""

import asyncio
import sys
import threading
from decimal import Decimal
from pathlib import Path
from types import SimpleNamespace

import pytest

from cueline.errors import ToolFailedError
from cueline.tools.recorded_tool import estimate
from cueline.tools.tool import load, tool

EXAMPLES = Path(__file__).with_name("examples.py")


async def estimated(said, **options):
    """Estimate a call of a tool whose estimator is *said*."""

    @tool(cost_usd=said)
    def paint(walls: int, colour: str = "white") -> None: ...

    globals()["paint"] = paint
    load.cache_clear()
    return await estimate(paint.spec(), {"walls": 2}, **options)


async def test_an_estimate_is_made_of_the_arguments():
    printed = load(f"{EXAMPLES}:printed").spec()

    assert Decimal("3.50") == (await estimate(printed, {"pages": 3})).usd


async def test_an_estimator_is_told_the_defaults_too():
    found = await estimated(lambda walls, colour: f"{walls}.{len(colour)}")

    assert Decimal("2.5") == found.usd


async def test_an_estimator_may_ask_elsewhere():
    async def asks(walls, **_):
        return Decimal(walls)

    assert Decimal(2) == (await estimated(asks)).usd


def broken(walls, **_):
    raise ToolFailedError("tool_error", f"no price for {walls}")


class MuteError(BaseException):
    def __str__(self):
        raise ZeroDivisionError


def mute(**_):
    raise MuteError


def gives_up(**_):
    raise asyncio.CancelledError


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (broken, "ToolFailedError: tool_error: no price for 2"),
        (lambda **_: "much", "ValueError: 'much'; say it as in '0.25'"),
        (lambda **_: -1, "ValueError: -1; say it as in '0.25'"),
        (lambda **_: None, "ValueError: None; say it as in '0.25'"),
        (lambda **_: sys.exit("no price"), "SystemExit: no price"),
        (mute, "MuteError"),
        (gives_up, "RuntimeError: it raised CancelledError without being cancelled"),
    ],
)
async def test_an_estimate_that_cannot_be_made_says_why(said, problem):
    found = await estimated(said)

    assert (None, problem) == (found.usd, found.problem)


async def test_an_estimate_that_takes_too_long_is_none():
    async def never(**_):
        await asyncio.Event().wait()

    assert "TimeoutError" == (await estimated(never, within=0)).problem


async def test_who_asks_for_an_estimate_can_stop_waiting():
    async def never(**_):
        await asyncio.Event().wait()

    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0):
            await estimated(never)


SLOW = """
import threading

from cueline import tool

assert threading.current_thread() is not threading.main_thread(), "others live in its loop"


@tool(cost_usd=lambda: "0.10")
def slow() -> None: ...
"""


async def test_a_module_is_imported_beside_the_loop_and_once(tmp_path):
    file = tmp_path / "slow.py"
    file.write_text(SLOW)
    known = {"target": f"{file}:slow", "name": "slow", "declared": "nothing"}
    spec = load(f"{EXAMPLES}:open_no_more_files").spec().model_copy(update=known)

    estimates = await asyncio.gather(estimate(spec, {}), estimate(spec, {}))

    assert [(Decimal("0.10"), "")] * 2 == [(each.usd, each.problem) for each in estimates]


ENDLESS = """
import sys

sys.modules["the_test"].ended.wait()
"""


async def test_an_import_that_does_not_end_holds_up_estimates_only(tmp_path, monkeypatch):
    file = tmp_path / "endless.py"
    file.write_text(ENDLESS)
    spec = load(f"{EXAMPLES}:printed").spec().model_copy(update={"target": f"{file}:endless"})
    ended = threading.Event()
    monkeypatch.setitem(sys.modules, "the_test", SimpleNamespace(ended=ended))

    try:
        estimates = await asyncio.gather(*(estimate(spec, {}, within=0.01) for _ in range(40)))

        assert {"TimeoutError"} == {each.problem for each in estimates}
        assert await asyncio.wait_for(asyncio.to_thread(lambda: True), 10)
    finally:
        ended.set()


async def test_a_tool_that_estimates_no_more_says_nothing():
    printed = load(f"{EXAMPLES}:double").spec().model_copy(update={"estimates": True})

    assert "it estimates nothing here" in (await estimate(printed, {"number": 3})).problem
