"""The pieces of a reply go to those who watch, and to nobody else."""

import asyncio
import gc
from types import SimpleNamespace

import pytest
from pydantic import SecretStr

from cueline.actors.live_text import BACKLOG, LiveTextHub, TextDelta, ToolProgress
from cueline.actors.model_port import Delta
from cueline.events.sanitize import Redactor

SECRET = "sk-ant-7f3a9c"
NO_SECRETS = Redactor()


@pytest.fixture
def hub():
    return LiveTextHub()


def sink(hub, stream="one", effect="1.m", attempt=1, redactor=NO_SECRETS):
    return hub.sink(stream, effect, attempt, redactor)


def test_a_piece_names_its_call_and_its_attempt(hub):
    with hub.subscribe("one") as pieces:
        sink(hub, effect="3.m", attempt=2)(Delta("text", "Good"))

    assert [TextDelta("Good", "text", "3.m", 2)] == pieces.ready()


def test_pieces_of_one_call_that_wait_are_joined(hub):
    with hub.subscribe("one") as pieces:
        reply = sink(hub)
        for kind, text in (
            ("thinking", "H"),
            ("thinking", "m."),
            ("text", "Good "),
            ("text", "day."),
        ):
            reply(Delta(kind, text))
        sink(hub, attempt=2)(Delta("text", "Good"))

    assert [
        TextDelta("Hm.", "thinking", "1.m", 1),
        TextDelta("Good day.", "text", "1.m", 1),
        TextDelta("Good", "text", "1.m", 2),
    ] == pieces.ready()
    assert [] == pieces.ready()


def test_a_watcher_gets_the_pieces_of_its_session_only(hub):
    with hub.subscribe("one") as pieces:
        sink(hub, "two")(Delta("text", "Good"))

    assert [] == pieces.ready()


def test_every_watcher_of_a_session_gets_its_pieces(hub):
    with hub.subscribe("one") as first, hub.subscribe("one") as second:
        sink(hub)(Delta("text", "Good"))

    assert [TextDelta("Good", "text", "1.m", 1)] == first.ready() == second.ready()


def test_who_comes_in_the_middle_of_a_reply_gets_the_next_one(hub):
    with hub.subscribe("one"):
        reply = sink(hub)
        reply(Delta("text", "Good "))
        with hub.subscribe("one") as late:
            reply(Delta("text", "day."))
            sink(hub, effect="2.m")(Delta("text", "Well"))

    assert ["Well"] == [piece.text for piece in late.ready()]


def test_nothing_is_kept_of_a_session_that_nobody_watches(hub):
    with hub.subscribe("one"):
        pass
    reply = sink(hub)
    gc.collect()
    before = len(gc.get_objects())

    for _ in range(1000):
        reply(Delta("text", SECRET))

    assert len(gc.get_objects()) - before < 10
    assert () == hub.watchers("one")


def test_a_slow_watcher_gets_the_beginning_of_a_reply_and_the_next_reply(hub):
    half = "a" * (BACKLOG // 2)
    with hub.subscribe("one") as slow:
        reply = sink(hub)
        for text in (half, "b", half, "c"):
            reply(Delta("text", text))
        came = slow.ready()
        reply(Delta("text", "d"))
        sink(hub, effect="2.m")(Delta("text", "Well"))

    assert [f"{half}b"] == [piece.text for piece in came]
    assert ["Well"] == [piece.text for piece in slow.ready()]
    assert 3 == slow.lost


def test_many_small_pieces_of_a_slow_watcher_are_bounded_too(hub):
    with hub.subscribe("one") as slow:
        reply = sink(hub)
        for _ in range(BACKLOG):
            reply(Delta("text", "a"))

    assert sum(len(piece.text) for piece in slow.ready()) < BACKLOG / 100


# I11
def test_a_secret_that_is_split_over_two_pieces_reaches_nobody(hub):
    with hub.subscribe("one") as pieces:
        reply = sink(hub, redactor=Redactor([SecretStr(SECRET)]))
        reply(Delta("text", f"It is {SECRET[:6]}"))
        before = pieces.ready()
        reply(Delta("text", f"{SECRET[6:]}."))
        reply.end()

    assert ["It is "] == [piece.text for piece in before]
    assert ["[redacted]."] == [piece.text for piece in pieces.ready()]


def test_what_was_held_back_comes_when_the_reply_is_whole(hub):
    with hub.subscribe("one") as pieces:
        reply = sink(hub, redactor=Redactor([SecretStr(SECRET)]))
        reply(Delta("thinking", "sk-"))
        reply(Delta("text", "sk-ant"))
        reply.end()

    assert [("thinking", "sk-"), ("text", "sk-ant")] == [(p.kind, p.text) for p in pieces.ready()]


async def test_a_watcher_waits_for_the_next_piece(hub):
    with hub.subscribe("one") as pieces:
        waiting = asyncio.create_task(pieces.take())
        sink(hub)(Delta("text", "Good"))

        assert [TextDelta("Good", "text", "1.m", 1)] == await waiting


def progress(hub, text, share=0.5, effect="1.0", stream="session-default/one"):
    hub.report(a_call(effect, stream), share, text)


def a_call(effect, stream):
    return SimpleNamespace(key=f"{stream}/{effect}", session=stream, effect=effect)


async def test_a_watcher_gets_the_latest_progress_of_each_running_call():
    hub = LiveTextHub()
    one = "session-default/one"
    hub.redactors |= {f"{one}/1.0": Redactor(), f"{one}/1.1": Redactor()}
    with hub.subscribe(one) as watcher:
        progress(hub, "a", 0.1)
        progress(hub, "b", 0.2)
        progress(hub, "c", None, effect="1.1")
        progress(hub, "of a call that is over", effect="1.2")
        progress(hub, "of another session", stream="session-default/two")

        assert [] == await watcher.take()
        expected = (ToolProgress("1.0", 0.2, "b"), ToolProgress("1.1", None, "c"))
        assert expected == watcher.take_progress()
        assert () == watcher.take_progress()


async def test_progress_has_no_secret_and_no_half_of_a_character():
    hub = LiveTextHub()
    hub.redactors["session-default/one/1.0"] = Redactor([SecretStr("hunter2-hunter2")])
    with hub.subscribe("session-default/one") as watcher:
        progress(hub, "uses hunter2-hunter2 \ud800")

        (told,) = watcher.take_progress()

    assert "uses [redacted] \ufffd" == told.text
