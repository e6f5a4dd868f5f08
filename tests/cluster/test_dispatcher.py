"""What a dispatcher in an actor of its own makes of its log, without a cluster."""

import asyncio
from concurrent.futures import Future
from dataclasses import replace
from types import SimpleNamespace

import pytest
import ray
from ray.exceptions import RaySystemError

from cueline.actors.presence import presence_of
from cueline.clock import SystemClock
from cueline.cluster import dispatcher as dispatchers
from cueline.cluster.dispatcher import DispatcherActor, DispatcherSettings
from cueline.cluster.log_writer import start_writer
from cueline.errors import ClusterError, RejectedError, UnknownEventTypeError
from cueline.events.codec import Codec
from cueline.events.journal import Journal
from cueline.stores.memory import MemoryStore

HERE = "a" * 56


@pytest.fixture
def dispatcher(monkeypatch):
    """A dispatcher whose writer opens the log `theirs`."""
    opened = Future()
    opened.set_result("theirs")
    asked = SimpleNamespace(remote=lambda: SimpleNamespace(future=lambda: opened))
    writer = SimpleNamespace(start=asked)
    store = MemoryStore(SystemClock())
    journal = Journal(store, Codec(), SystemClock().now)
    factory = SimpleNamespace(log_id="ours", writes_anywhere=False, journal=lambda _: journal)
    context = SimpleNamespace(factory=factory, named=str, create=lambda *_, **__: writer, node=HERE)
    monkeypatch.setattr(ray, "nodes", lambda: [node_at(HERE, "10.0.0.5")])
    begun = SimpleNamespace(was_current_actor_reconstructed=False)
    monkeypatch.setattr(ray, "get_runtime_context", lambda: begun)
    return DispatcherActor(context, DispatcherSettings(), presence_of("up"))


def node_at(node, address, *, lives=True):
    return {"NodeID": node, "NodeManagerAddress": address, "Alive": lives}


@pytest.fixture
def place_of_the_writer(monkeypatch):
    """Return where the writer starts of a log on the node HERE, 10.0.0.5, among *nodes*."""

    async def place(*nodes):
        monkeypatch.setattr(ray, "nodes", lambda: nodes)
        factory = SimpleNamespace(writes_anywhere=False)
        context = SimpleNamespace(
            factory=factory, named=str, node=HERE, address="10.0.0.5", create=lambda *_, **how: how
        )
        return (await start_writer(context))["placement"]["scheduling_strategy"].node_id

    return place


async def test_the_writer_starts_on_whichever_node_is_on_the_machine_with_the_log(
    place_of_the_writer,
):
    other, new = "b" * 56, "c" * 56
    gone = node_at(HERE, "10.0.0.5", lives=False)

    places = [
        await place_of_the_writer(node_at(other, "10.0.0.6"), gone, node_at(new, "10.0.0.5")),
        await place_of_the_writer(node_at(other, "10.0.0.6"), node_at(HERE, "10.0.0.5")),
    ]

    assert [new, HERE] == places


async def test_without_the_machine_with_the_log_there_is_no_writer(place_of_the_writer):
    with pytest.raises(ClusterError, match=r"10.0.0.5: the machine with the log is not in the"):
        await place_of_the_writer(node_at("b" * 56, "10.0.0.6"))


async def test_another_log_at_the_same_path_is_refused(dispatcher):
    # On another machine, or in another container.
    with pytest.raises(ClusterError, match="has another log at this path"):
        await dispatcher.start()


async def test_one_that_stays_gives_way_if_who_started_it_died_before_it_was_ready(dispatcher):
    dispatcher._wanted = DispatcherSettings(stays=True)
    dispatcher._keeper = replace(presence_of("up"), process_started=1)
    keeper = dispatcher._keeper.incarnation

    assert await dispatcher.gives_way(presence_of("up"), abandoned=keeper)
    with pytest.raises(ClusterError):
        await dispatcher.gives_way(presence_of("up"), abandoned="another")


async def test_who_keeps_it_up_hears_of_trouble_at_once(dispatcher):
    asking = asyncio.create_task(dispatcher.troubles(3600))
    await asyncio.wait([asking], timeout=0)

    dispatcher._trouble("session-default/one", ClusterError("a host", "it broke"))

    assert ["session-default/one: a host: it broke"] == await asyncio.wait_for(asking, 5)


@pytest.mark.parametrize("name", ["session-default/one", "one"])
async def test_what_trouble_is_about_is_told_once(dispatcher, name):
    dispatcher._trouble("session-default/one", RejectedError(name, "it broke"))
    dispatcher._trouble("session-default/one", UnknownEventTypeError(name, 3, "Odd", 1))

    broke, odd = await dispatcher.troubles(0)

    assert f"{name}: it broke" == broke
    assert odd.startswith(f"{name}@3: unknown event Odd")


async def test_what_another_version_left_is_ended_although_ray_was_away(dispatcher, monkeypatch):
    left = ["up/runner-1@0.0.1", "up/gate@0.0.1"]
    answers = iter([RaySystemError("away"), left, RaySystemError("away"), left[1:]])
    killed = []

    def names(**_):
        answer = next(answers)
        if isinstance(answer, Exception):
            raise answer
        return [{"namespace": "n", "name": each} for each in answer]

    monkeypatch.setattr(ray.util, "list_named_actors", names)
    monkeypatch.setattr(ray, "get_actor", lambda name, _: name)
    monkeypatch.setattr(ray, "kill", killed.append)
    monkeypatch.setattr(dispatchers, "BEAT_SECONDS", 0.0)
    dispatcher._context.namespace, dispatcher._context.owner = "n", "up"

    await dispatcher._end_former()

    assert left[1:] == killed
