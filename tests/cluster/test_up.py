"""What an `up` takes down of what is on a cluster, without one."""

from concurrent.futures import Future
from contextlib import nullcontext, suppress
from dataclasses import replace
from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import RayError

from cueline.actors.presence import presence_of
from cueline.cluster import connection
from cueline.cluster import up as up_module
from cueline.cluster.cluster_context import VERSION, ClusterContext
from cueline.cluster.connection import RayConnection
from cueline.cluster.dispatcher import DispatcherSettings
from cueline.cluster.up import Up
from cueline.config.settings import Settings
from cueline.errors import ClusterError
from cueline.events.log_url import LogUrl
from cueline.runtime.up import UpPlan, run_up
from cueline.runtime.up_record import UpRecord, find_up

OURS = {f"up/dispatcher@{VERSION}", f"up/writer@{VERSION}"}
OUR_OWN = False
"""What a dispatcher answers that nobody has left to us."""
THEIRS = {"up/writer@0.0.1", f"up/host-1@1{VERSION}"}


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
    monkeypatch.setattr(ClusterContext, "create", lambda *_, **__: dispatcher)
    factory = SimpleNamespace(grace_seconds=0.0)
    up = Up(RayConnection("a:1", "here", "a", ours=True), "n", factory, presence_of("up"))
    try:
        return await up.start(DispatcherSettings())
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


@pytest.fixture
def notes(monkeypatch, tmp_path):
    """What is noted of an `up` while it starts, and after it did not, where *before* was."""
    log = tmp_path / "log.db"
    seen, told = [], []

    async def start(_, __, abandoned):
        told.append(abandoned)
        seen.append((UpRecord.read(log), find_up(log)))
        raise ClusterError("the cluster", "it does not start")

    async def notes(before=None):
        if before is not None:
            before.write(log)
        options = {"address": "a:1", "hosts": 1, "runners": 1, "recover": True}
        plan = UpPlan(log=LogUrl.of(log), settings=Settings(grace_seconds=0), **options)
        with pytest.raises(ClusterError, match="does not start"):
            async with run_up(plan):
                pass
        return *seen[0], UpRecord.read(log), *told

    monkeypatch.setattr(Up, "start", start)
    there = RayConnection("a:1", "here", "a", ours=True)
    monkeypatch.setattr(connection, "connect_ray", lambda *_: nullcontext(there))
    return notes


async def test_what_an_up_starts_can_be_taken_down_whoever_kills_it_meanwhile(notes):
    # It is noted before there is anything, for `down`; and for nobody else.
    noted, found, after, abandoned = await notes()

    assert ("a:1", None, None, None) == (noted.address, found, after, abandoned)


async def test_an_up_that_does_not_start_leaves_the_note_of_another(notes):
    killed = replace(presence_of("up"), process_started=1)
    other = UpRecord(address="b:2", namespace="n", version="1", keeper=killed)

    assert (other, None, other, None) == await notes(other)


async def test_an_up_replaces_what_one_began_that_was_killed_before_it_was_ready(notes):
    killed = replace(presence_of("up"), process_started=1)
    other = UpRecord(address="b:2", namespace="n", version="1", keeper=killed, ready=False)

    assert (other, None, other, killed.incarnation) == await notes(other)


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


async def test_an_up_beside_one_of_another_version_with_a_living_keeper_ends_nothing(
    monkeypatch, killed
):
    there = [{"name": "up/dispatcher@0.0.1", "namespace": "n"}]
    theirs = SimpleNamespace(hand_over=coming(ClusterError("this log", "another has it")))
    monkeypatch.setattr(ray.util, "list_named_actors", lambda **_: there)
    monkeypatch.setattr(ray, "get_actor", lambda *_: theirs)

    with pytest.raises(ClusterError, match="another has it"):
        await begin_and_end(monkeypatch, SimpleNamespace())

    assert set() == killed
