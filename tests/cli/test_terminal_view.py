"""What a command that shows a session does while the session is in trouble."""

import asyncio
import re
from dataclasses import replace

import pytest
import typer

from cueline.actors.inbox import post
from cueline.actors.presence import presence_of
from cueline.actors.session_owner import set_aside_owner
from cueline.cli.approval_prompt import question_of, question_with_edit
from cueline.cli.failure import Exit
from cueline.cli.session_run import RequestRecorder
from cueline.cli.terminal_view import TerminalView
from cueline.client.client import Client
from cueline.client.question import PersonalQuestion
from cueline.console.screen import Screen
from cueline.deciders.session import SESSION
from cueline.errors import ClusterError, CuelineError, LogUnavailableError
from cueline.events.agent import Policy
from cueline.events.inbox import DecisionGiven, MessageSent
from cueline.events.message import Estimate, ToolCall
from cueline.events.sanitize import Redactor
from cueline.events.session import ApprovalRequested, MessageRefused
from cueline.runtime.inline import inline
from cueline.runtime.open_log import open_log
from cueline.runtime.place import Place
from cueline.runtime.up_record import UpRecord
from cueline.testing.clock import FakeClock
from cueline.testing.given import given
from tests.session_example import (
    AGENT,
    NOW,
    asking,
    question,
    saying,
    started,
)

ONE = "session-default/one"


def client_of(log):
    return Client(log, Place(log.url))


async def test_trouble_that_may_pass_is_told_once_and_waited_for(finished, capsys):
    async with open_log(finished.log) as log:
        watch = TerminalView(client_of(log), ONE, Screen(quiet=True), attended=False)
        await watch.catch_up(show=False)
        for _ in range(2):
            watch.stuck(ONE, LogUnavailableError("log.db", "the disk is full"))

        assert await watch.until_it_rests()

    told = "warning: log.db: the disk is full (tried again until it works)\n"
    assert told == capsys.readouterr().err


# A host that cannot be started, a breaker that cannot be read: else it waits without a word.
async def test_lasting_trouble_of_what_the_session_needs_is_told_and_ends_nothing(finished, capsys):
    async with open_log(finished.log) as log:
        watch = TerminalView(client_of(log), ONE, Screen(quiet=True), attended=False)
        await watch.catch_up(show=False)
        watch.stuck("watching the fleet", ClusterError("host-1", "it did not start"))

        assert await watch.until_it_rests()

    told = "warning: watching the fleet: host-1: it did not start\n"
    assert told == capsys.readouterr().err


async def test_what_a_warning_repeats_moves_no_cursor(finished, capsys):
    async with open_log(finished.log) as log:
        watch = TerminalView(client_of(log), ONE, Screen(quiet=True), attended=False)

        watch.stuck(ONE, LogUnavailableError("log.db", "\x1b[2Jfull \u202etxt"))

    assert "warning: log.db: \\x1b[2Jfull \\x202etxt (tried" in capsys.readouterr().err


async def test_who_leaves_while_ray_starts_has_recorded_nothing():
    recorded = []

    async def record(client):
        recorded.append(client)

    recorder = RequestRecorder(record)
    recorder.left = True

    with pytest.raises(typer.Exit) as left:
        await recorder.record(None)
    assert ([], Exit.LEFT) == (recorded, left.value.exit_code)


# What was accepted is answered: whoever drove the session refuses it before they leave.
async def test_a_session_that_has_ended_is_watched_until_its_inbox_is_read(finished):
    async with open_log(finished.log) as log:
        await post(log.journal(), ONE, MessageSent(lane="note", text="And another thing"))
        watch = TerminalView(client_of(log), ONE, Screen(quiet=True), attended=False)
        await watch.catch_up(show=False)
        assert await watch._stays()
        async with inline(log, scope={ONE}, on_trouble=watch.stuck) as here:
            await here.place([ONE])
            assert await watch.until_it_rests()

    assert "MessageRefused" == finished.types("one")[-1]


# 004-024
def test_who_is_asked_at_the_prompt_is_told_why_nobody_knows_the_cost():
    tools = (AGENT.tools[3].model_copy(update={"estimates": True}),)
    spec = AGENT.model_copy(update={"tools": tools, "policy": Policy(approval=("cost",))})
    unknown = {"1.0": Estimate(problem="no list")}
    past = given().when(
        started(spec), asking(), saying("shout").model_copy(update={"estimates": unknown})
    )
    asked = question("1.0", "1.1.0.1").model_copy(update={"rule": "cost"})

    called = past.state.call("1.0")
    here = PersonalQuestion(unpriced=called.judged.unpriced)

    assert "of unknown cost (no list)" == question_of("one", asked, None, here).cost


# I9: what is shown is what runs.
async def test_a_call_that_was_changed_at_the_prompt_shows_no_difference_of_another():
    call = ToolCall(id="c", name="delete", arguments={"path": "a"})
    here = PersonalQuestion(preview="--- a/a")
    asked = question_of("one", question("1.0", "1.1.0.1"), call, here)

    edited = await question_with_edit(asked, "path=b", AGENT, Redactor())

    assert ({"path": "b"}, "", True) == (edited.arguments, edited.preview, edited.edited)


async def asks_at_the_prompt(log, *heard):
    """Return whether a person at a terminal is asked who resumes, and has *heard* these facts."""
    watch = TerminalView(client_of(log), ONE, Screen(quiet=True), attended=True)
    await watch.catch_up(show=False)
    (asked,) = watch._questions.asked.values()
    await watch._questions._ask_as_it_stands(asked)
    recorded = [each async for each in log.store.read(ONE)][-1]
    for fact in heard:
        watch.watcher.reader.state = SESSION.evolve(watch.watcher.reader.state, fact)
        watch._take(recorded, fact, show=True)
        await asyncio.gather(*watch._tasks)
    return bool(watch._questions.prompts._waiting)


async def decide_elsewhere(log, **changes):
    """Put a grant of the open question into the inbox, and return it."""
    facts = [fact async for _, fact in log.journal().read(ONE)]
    (asked,) = [fact for fact in facts if isinstance(fact, ApprovalRequested)]
    said = {"digest": asked.digest, "verdict": "grant", "by": "ann", **changes}
    decision = DecisionGiven(approval=asked.approval, **said)
    await post(log.journal(), ONE, decision)
    return decision


async def test_what_was_decided_elsewhere_is_asked_only_if_that_is_refused(asking):
    async with open_log(asking.log) as log:
        assert await asks_at_the_prompt(log)
        decision = await decide_elsewhere(log)
        assert not await asks_at_the_prompt(log)

        refused = MessageRefused(
            inbox_version=2, recorded_at=NOW, message=decision, refusal={"code": "not_allowed"}
        )

        assert await asks_at_the_prompt(log, refused)


REFUSED = [{"digest": "of another call"}, {"by": "agent:robot"}]
refused = pytest.mark.parametrize("changes", REFUSED, ids=["something else", "nobody"])


@refused
async def test_a_decision_that_the_gate_will_refuse_leaves_the_question_open(asking, changes):
    async with open_log(asking.log) as log:
        await decide_elsewhere(log, **changes)

        assert await asks_at_the_prompt(log)


@refused
def test_a_decision_that_the_gate_will_refuse_keeps_nobody_from_deciding(asking, changes):
    async def elsewhere():
        async with open_log(asking.log) as log:
            await decide_elsewhere(log, **changes)

    asyncio.run(elsewhere())

    assert "  cueline approve one.1.0.1\n  cueline resume one\n" in asking("show", "one").stdout
    assert 0 == asking("approve", "one.1.0.1").exit_code
    assert "decided; go on with\n  cueline resume one\n" in asking("show", "one").stdout
    assert 0 == asking("resume", "one", "--inline").exit_code


async def test_what_goes_wrong_beside_the_watching_is_not_kept_quiet(asking):
    """Else somebody would wait for a question that nobody asks."""

    async def ask():
        raise ZeroDivisionError

    async with open_log(asking.log) as log:
        await post(log.journal(), ONE, MessageSent(lane="note", text="And?"))
        watch = TerminalView(client_of(log), ONE, Screen(quiet=True), attended=False)
        watch._soon(ask())

        with pytest.raises(ZeroDivisionError):
            await watch.until_it_rests()


async def leave(log):
    """Return whether a session that has something to read rested, or was left."""
    await post(log.journal(), ONE, MessageSent(lane="note", text="And?"))
    watch = TerminalView(client_of(log), ONE, Screen(quiet=True), attended=False)
    leaving = asyncio.create_task(watch.until_it_rests())
    await log.clock.run_until(leaving.done, within=30)
    return leaving.result()


# It was told of, where `up` says what goes wrong.
async def test_what_an_up_has_set_aside_is_not_watched_for_ever(asking, capsys):
    up = UpRecord(address="a:1", namespace="n", version="1", keeper=presence_of("up"))
    up.write(asking.log)
    async with open_log(asking.log) as opened:
        log = replace(opened, clock=FakeClock())
        await log.store.acquire(ONE, set_aside_owner("host-1"), (await log.store.head(ONE)).epoch)

        assert not await leave(log)

    assert "one: nobody drives it now (host-1 has set it aside)\n" == capsys.readouterr().err


async def test_who_watches_is_told_that_the_up_has_ended(asking, capsys):
    async with open_log(asking.log) as opened:
        assert not await leave(replace(opened, clock=FakeClock()))

    assert re.fullmatch(r"one: nobody drives it now \(.* has left it\)\n", capsys.readouterr().err)


async def test_an_answer_that_cannot_be_given_is_not_kept_quiet(asking):
    """Else they would wait for a question that they have answered."""
    async with open_log(asking.log) as log:
        watch = TerminalView(client_of(log), ONE, Screen(quiet=True), attended=True)
        await watch.catch_up(show=False)
        (asked,) = watch._questions.asked.values()
        await watch._questions._ask_as_it_stands(asked)
        await log.store.close()
        watch._questions.prompts.enter("y")
        (giving,) = watch._tasks
        await asyncio.wait([giving])

        with pytest.raises(CuelineError):
            await watch._over
