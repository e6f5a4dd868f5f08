"""What becomes of an actor that answers nobody, and of one that only takes its time (I14)."""

import subprocess
import sys
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
import ray

from cueline.clock import SystemClock
from cueline.cluster import ray_call
from cueline.cluster.ray_call import ask_head, end_frozen_actor

ALIVE, RESTARTING = 2, 3


@pytest.fixture
def killed(monkeypatch):
    killed = []
    monkeypatch.setattr(ray_call, "LOOK_SECONDS", 0.0)
    monkeypatch.setattr(ray_call, "ANSWER_SECONDS", 0.0)
    monkeypatch.setattr(ray, "is_initialized", lambda: True)
    monkeypatch.setattr(ray, "cancel", lambda _: None)
    monkeypatch.setattr(ray, "kill", lambda actor, no_restart: killed.append((actor, no_restart)))
    return killed


def actor(state, ping):
    asked = SimpleNamespace(remote=lambda: SimpleNamespace(future=lambda: ping))
    return SimpleNamespace(_get_local_state=lambda: state, __ray_ready__=asked)


def answered():
    ping = Future()
    ping.set_result(True)
    return ping


async def wait_in(awaited):
    clock = SystemClock()
    with end_frozen_actor(awaited):
        for _ in range(20):
            await clock.sleep(0)


async def test_who_waits_for_a_frozen_actor_ends_it_and_ray_restarts_it(killed):
    frozen = actor(ALIVE, Future())

    await wait_in(frozen)

    assert (frozen, False) == killed[0]


@pytest.mark.parametrize(
    "awaited", [actor(ALIVE, answered()), actor(RESTARTING, Future())], ids=["busy", "starting"]
)
async def test_an_actor_that_answers_or_starts_is_waited_for(killed, monkeypatch, awaited):
    monkeypatch.setattr(ray_call, "ANSWER_SECONDS", 1.0)

    await wait_in(awaited)

    assert [] == killed


async def test_a_call_that_ends_after_ray_has_is_let_go(monkeypatch):
    cancelled = []
    monkeypatch.setattr(ray, "is_initialized", lambda: False)
    monkeypatch.setattr(ray, "cancel", cancelled.append)

    with pytest.raises(TimeoutError):
        await ray_call.call(SimpleNamespace(future=Future), 0.0)

    # Ray would start itself again for that.
    assert [] == cancelled


async def test_nobody_looks_at_an_actor_that_was_quick(killed, monkeypatch):
    monkeypatch.setattr(ray_call, "LOOK_SECONDS", 1.0)
    frozen = actor(ALIVE, Future())

    await wait_in(frozen)

    assert [] == killed


NOBODY_ANSWERS = """
import asyncio
import threading

from cueline.cluster.ray_call import ask_head


async def main():
    try:
        async with asyncio.timeout(0.01):
            await ask_head(threading.Event().wait)
    except TimeoutError:
        print("given up")


asyncio.run(main())
"""


def test_a_process_ends_though_the_head_of_ray_never_answers_it():
    # I14: the session has ended, and only Ray has not.
    command = [sys.executable, "-c", NOBODY_ANSWERS]
    done = subprocess.run(command, check=True, capture_output=True, text=True, timeout=60)

    assert "given up\n" == done.stdout


async def test_the_head_of_ray_answers_or_fails():
    assert "the answer" == await ask_head(lambda: "the answer")
    with pytest.raises(ZeroDivisionError):
        await ask_head(lambda: 1 / 0)
