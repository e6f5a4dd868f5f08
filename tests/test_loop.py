import asyncio
import sys

import pytest

from cueline.runtime.loop import run


async def switching():
    return sys.getswitchinterval()


async def loop_of_work():
    return type(asyncio.get_running_loop()).__module__


def test_commands_run_in_uvloop():
    assert "uvloop" == run(loop_of_work())


def test_commands_run_in_asyncio_s_loop_where_there_is_no_uvloop(monkeypatch):
    monkeypatch.setitem(sys.modules, "uvloop", None)

    assert run(loop_of_work()).startswith("asyncio.")


def test_a_thread_that_computes_keeps_commands_waiting_a_tenth_as_long_as_python_lets_it():
    assert run(switching()) == pytest.approx(0.005 / 10)
