"""What an `up` takes down of what is on a cluster, without one."""

from concurrent.futures import Future
from contextlib import suppress
from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import RayError

from cueline.actors.presence import presence_of
from cueline.cluster import up as up_module
from cueline.cluster.connection import Connection
from cueline.cluster.dispatcher import Wanted
from cueline.cluster.site import VERSION, Site
from cueline.cluster.up import Up
from cueline.errors import ClusterError

OURS = {f"up/dispatcher@{VERSION}", f"up/writer@{VERSION}"}
OUR_OWN = False
"""What a dispatcher answers that nobody has left to us."""
THEIRS = {"up/dispatcher@0.0.1", f"up/host-1@1{VERSION}"}


def coming(*answers):
    """Stand for a method of an actor that brings *answers*, or fails of them."""
    futures = []
    for answer in answers:
        future = Future()
        if isinstance(answer, Exception):
            future.set_exception(answer)
        else:
            future.set_result(answer)
        futures.append(future)
    return SimpleNamespace(remote=lambda *_: SimpleNamespace(future=lambda: futures.pop(0)))


@pytest.fixture
def killed(monkeypatch):
    """What is killed of the actors that are there."""
    killed = set()
    there = [{"name": name, "namespace": "n"} for name in OURS | THEIRS]
    monkeypatch.setattr(ray.util, "list_named_actors", lambda **_: there)
    monkeypatch.setattr(ray, "get_actor", lambda name, _: name)
    monkeypatch.setattr(ray, "kill", killed.add)
    return killed


async def begin_and_end(monkeypatch, dispatcher):
    monkeypatch.setattr(Site, "create", lambda *_, **__: dispatcher)
    parts = SimpleNamespace(grace_seconds=0.0)
    up = Up(Connection("a:1", "here", ours=False), "n", parts, presence_of("up"))
    try:
        return await up.start(Wanted())
    finally:
        await up.stop()


@pytest.mark.parametrize(
    ("told", "ended"),
    [("it has begun", OURS | THEIRS), (ClusterError("this log", "another has it"), OURS)],
    ids=["begun", "refused"],
)
async def test_an_up_that_is_refused_ends_only_what_it_started(monkeypatch, killed, told, ended):
    # Of another version there may be one that lives.
    dispatcher = SimpleNamespace(gives_way=coming(OUR_OWN), start=coming(told), stop=coming(None))

    with suppress(ClusterError):
        await begin_and_end(monkeypatch, dispatcher)

    assert ended == killed


async def test_an_up_beside_one_of_its_version_ends_nothing(monkeypatch, killed):
    dispatcher = SimpleNamespace(gives_way=coming(ClusterError("this log", "another has it")))

    with pytest.raises(ClusterError, match="another has it"):
        await begin_and_end(monkeypatch, dispatcher)

    assert set() == killed


async def test_a_dispatcher_that_is_just_being_restarted_is_asked_again(monkeypatch, killed):
    monkeypatch.setattr(up_module, "_AGAIN_SECONDS", 0.0)
    gives_way = coming(RayError("it is being restarted"), OUR_OWN)
    dispatcher = SimpleNamespace(gives_way=gives_way, start=coming("begun"), stop=coming(None))

    assert "begun" == await begin_and_end(monkeypatch, dispatcher)
