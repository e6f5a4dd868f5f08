"""What an `up` takes down of what is on a cluster, without one."""

from concurrent.futures import Future
from contextlib import suppress
from types import SimpleNamespace

import pytest
import ray

from cueline.actors.presence import presence_of
from cueline.cluster.connection import Connection
from cueline.cluster.dispatcher import Wanted
from cueline.cluster.site import VERSION, Site
from cueline.cluster.up import Up
from cueline.errors import ClusterError

OURS = {f"up/dispatcher@{VERSION}", f"up/writer@{VERSION}"}
THEIRS = {"up/dispatcher@0.0.1", f"up/host-1@1{VERSION}"}


def coming(answer):
    """Stand for a method of an actor that brings *answer*, or fails of it."""
    future = Future()
    if isinstance(answer, Exception):
        future.set_exception(answer)
    else:
        future.set_result(answer)
    return SimpleNamespace(remote=lambda *_: SimpleNamespace(future=lambda: future))


@pytest.mark.parametrize(
    ("told", "ended"),
    [("it has begun", OURS | THEIRS), (ClusterError("this log", "another has it"), OURS)],
    ids=["begun", "refused"],
)
async def test_an_up_that_is_refused_ends_only_what_it_started(monkeypatch, told, ended):
    # Of another version there may be one that lives.
    killed = set()
    there = [{"name": name, "namespace": "n"} for name in OURS | THEIRS]
    dispatcher = SimpleNamespace(
        gives_way=coming(answer=False), start=coming(told), stop=coming(None)
    )
    monkeypatch.setattr(Site, "create", lambda *_, **__: dispatcher)
    monkeypatch.setattr(ray.util, "list_named_actors", lambda **_: there)
    monkeypatch.setattr(ray, "get_actor", lambda name, _: name)
    monkeypatch.setattr(ray, "kill", killed.add)
    parts = SimpleNamespace(grace_seconds=0.0)
    up = Up(Connection("a:1", "here", ours=False), "n", parts, presence_of("up"))

    with suppress(ClusterError):
        await up.start(Wanted())
    await up.stop()

    assert ended == killed
