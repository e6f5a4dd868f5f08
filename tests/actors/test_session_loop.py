"""One session that is driven on fakes."""

from collections import Counter
from datetime import timedelta

import pytest

from cueline.deciders.session import Status
from cueline.errors import (
    ConfigError,
    LogUnavailableError,
    ProviderRefusedError,
    ProviderUnavailableError,
    UnknownOutcomeError,
)
from cueline.events.inbox import MessageSent, ResumeAsked
from cueline.events.session import (
    MessageRefused,
    ModelFailed,
    SessionCompleted,
    SessionWaiting,
    ToolSkipped,
)
from cueline.testing.clock import take_turns
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SESSION, Cut, Interrupted, SessionHarness, Valve

NOTE = MessageSent(lane="note", text="By the way.")


async def commits(scene, stream=SESSION):
    seen = [event async for event in scene.outside.store.read_all() if event.stream == stream]
    return Counter(event.type for event in seen if event.seq == 0).total()


async def test_a_turn_with_a_tool_call_is_two_commits():
    # DESIGN 5: the count that the figures rest on.
    scene = SessionHarness([asks_for(("pay", {}))] * 9 + [says("done")])

    await scene.begin()

    assert 2 * 9 + 2 == await commits(scene)


async def test_results_that_are_ready_together_are_one_commit():
    scene = SessionHarness([asks_for(*[("read", {"n": n}) for n in range(4)]), says("done")])

    await scene.begin()

    assert 4 == await commits(scene)
    assert 4 == (await scene.count())["ToolReturned"]


async def test_nothing_is_done_before_it_is_recorded():
    # I2, 000-002
    scene = SessionHarness([asks_for(("pay", {})), says("done")])
    recorded = {}

    async def pay(order):
        recorded["pay"] = await scene.types()
        return "paid"

    scene.executor.tools = {"pay": pay}
    await scene.begin()

    assert "ToolStarted" == recorded["pay"][-1]


@pytest.mark.parametrize(("open_", "rest"), [(True, "SessionIdle"), (False, "SessionCompleted")])
@pytest.mark.parametrize("when", ["before", "after"])
async def test_a_message_at_the_very_moment_a_session_rests_is_read(open_, rest, when):
    # I7, D31: it leads to exactly one fact, also at the moment of the end.
    scene = SessionHarness([says("one"), says("two")])

    async def speak():
        await scene.outside.say(SESSION, NOTE)
        del life.at[point]

    point = f"{when} ModelReplied, {rest}"
    life = Interrupted({point: speak})
    await scene.begin(life, open=open_)

    count = await scene.count()
    assert 1 == count["MessageReceived"] + count["MessageRefused"]
    assert 2 == (await scene.state()).inbox_read


async def test_a_message_after_the_end_is_refused_and_changes_nothing():
    # I6, I7, D15
    scene = SessionHarness([says("done")])
    await scene.begin()

    await scene.say(NOTE)

    assert "session_ended" == (await scene.last(MessageRefused)).refusal.code
    assert Status.COMPLETED == (await scene.state()).status


async def test_a_session_at_rest_leaves_nothing_in_its_host():
    # 003-002, 003-006, I12
    scene = SessionHarness([says("done")])

    world = await scene.begin(open=True)

    assert [] == await world.host.active()
    assert {} == world.host._loops
    assert {} == world.host._agent_cache._users


async def test_an_unavailable_log_is_reported_once_and_retried():
    # DESIGN 6: the outcome stays in memory until the log takes it.
    scene = SessionHarness([says("done")])
    failures = [LogUnavailableError("log.db", "the disk is full")] * 3

    async def fail():
        if failures:
            raise failures.pop()

    world = await scene.begin(Interrupted({"before ModelReplied, SessionCompleted": fail}))
    await scene.clock.advance(1)

    assert "SessionCompleted" == (await scene.types())[-1]
    assert 1 == len(world.troubles)
    assert 1 == len(scene.model.asked)


async def test_a_full_disk_is_reported_once_and_the_output_is_written_later():
    scene, life = SessionHarness([asks_for(("pay", {})), says("done")]), Interrupted({})
    failures = [LogUnavailableError("log.db", "the disk is full")] * 3

    async def print_much(_):
        life.at = {"before a blob": fail}
        return "a lot " * 20_000

    async def fail():
        if failures:
            raise failures.pop()

    scene.executor.tools = {"pay": print_much}
    world = await scene.begin(life)
    await scene.clock.advance(1)

    assert "SessionCompleted" == (await scene.types())[-1]
    assert 1 == len(world.troubles)


class Closed(list):
    """Where trouble is told, and nobody can be told any more."""

    def append(self, _):
        raise BrokenPipeError


async def test_a_reply_is_kept_when_an_error_cannot_be_reported():
    valve, life = Valve(says("done")), Interrupted({})
    scene = SessionHarness([valve])
    world = await scene.begin(life)
    world.troubles = Closed()
    failures = [LogUnavailableError("log.db", "the disk is full")]

    async def fail():
        if failures:
            raise failures.pop()

    life.at = {"before ModelReplied, SessionCompleted": fail}
    valve.opened.set()
    await scene.clock.advance(1)

    assert "SessionCompleted" == (await scene.types())[-1]
    assert 1 == valve.began


async def test_a_reply_is_not_lost_while_the_log_cannot_be_read():
    # 000-002, C23: it was paid; the inbox is read before the append.
    valve, life = Valve(says("done")), Cut()
    scene = SessionHarness([valve])
    world = await scene.begin(life)
    await scene.outside.say(SESSION, NOTE)
    life.away = True
    world.host.activate(SESSION)
    valve.opened.set()
    await scene.clock.advance(5)
    life.away = False
    await scene.clock.advance(1)

    assert ["ModelReplied", "SessionCompleted", "MessageRefused"] == (await scene.types())[-3:]
    assert 1 == valve.began


async def test_an_append_whose_outcome_is_unknown_is_asked_again_and_counts_once():
    scene = SessionHarness([says("done")])
    failures = [UnknownOutcomeError(SESSION, "the connection broke")]

    async def fail():
        if failures:
            raise failures.pop()

    await scene.begin(Interrupted({"after ModelReplied, SessionCompleted": fail}))
    await scene.clock.advance(1)

    assert 1 == (await scene.count())["SessionCompleted"]


async def test_a_failed_model_call_is_tried_again_after_a_recorded_delay():
    # 000-014, 003-068, C3: the retry waits at rest, and survives its host.
    cut = ProviderUnavailableError("malformed_reply", "the reply broke off")
    scene = SessionHarness(
        {(1, 1): cut, (1, 2): says("whole")}, retry={"base_seconds": 10, "jitter": 0}
    )

    world = await scene.begin()
    assert [] == await world.host.active()
    await world.kill()
    await scene.clock.advance(10)
    await scene.world()

    assert (
        10
        == (await scene.last(ModelFailed)).retry_at.timestamp()
        - (await scene.last(ModelFailed)).failed_at.timestamp()
    )
    assert "whole" == (await scene.last(SessionCompleted)).result


async def test_a_moment_that_passes_while_the_log_is_written_is_not_waited_for():
    # I14
    cut = ProviderUnavailableError("malformed_reply", "the reply broke off")
    scene = SessionHarness(
        {(1, 1): cut, (1, 2): says("whole")}, retry={"base_seconds": 1, "jitter": 0}
    )

    async def take_long():
        scene.clock._now += timedelta(seconds=2)

    await scene.begin(Interrupted({"after ModelFailed": take_long}))
    await scene.clock.advance(0)

    assert "whole" == (await scene.last(SessionCompleted)).result


async def test_half_a_reply_is_a_failed_attempt_and_never_a_turn():
    cut = ProviderUnavailableError("malformed_reply", "the reply broke off")
    scene = SessionHarness({(1, 1): cut, (1, 2): says("whole")}, retry={"base_seconds": 1})

    await scene.begin()
    await scene.clock.advance(2)

    assert 1 == (await scene.count())["ModelReplied"]
    assert "whole" == (await scene.last(SessionCompleted)).result


async def test_a_model_that_cannot_be_made_waits_for_an_operator():
    scene = SessionHarness([])

    async def fail():
        raise ConfigError("ANTHROPIC_API_KEY", "is not set")

    scene.model.reply = lambda *_: fail()
    await scene.begin()

    waiting = await scene.last(SessionWaiting)
    assert "operator" == waiting.kind
    assert "ANTHROPIC_API_KEY" in waiting.cause.message


async def test_a_permanent_error_ends_only_its_own_session():
    # 000-017, 000-049, C9
    refused = ProviderRefusedError("invalid_request", "the tools are not well formed")
    neighbour = Valve(says("done"))
    replies = {(1, 1): neighbour}
    scene = SessionHarness(replies)
    world = await scene.begin()

    replies[1, 1] = refused
    broken = await scene.outside.start("broken", scene.agent)
    await scene.clock.settle()
    neighbour.opened.set()
    await scene.clock.settle()

    failed = (await scene.outside.facts(broken))[-1]
    assert ("SessionFailed", "invalid_request", False) == (
        failed.type,
        failed.kind,
        failed.recoverable,
    )
    assert [] == world.troubles
    assert (0, "SessionCompleted") == (neighbour.cancelled, (await scene.types())[-1])


async def test_a_providers_bug_waits_for_an_operator_and_a_resume_tries_again():
    scene = SessionHarness({(1, 1): KeyError("choices"), (1, 2): says("done")})
    await scene.begin()
    assert "KeyError" in (await scene.last(SessionWaiting)).cause.message

    await scene.say(ResumeAsked())

    assert "SessionCompleted" == (await scene.types())[-1]


async def test_a_tool_that_the_model_invented_is_told_with_the_tools_there_are():
    scene = SessionHarness([asks_for(("fly", {})), says("well")])

    await scene.begin()

    skipped = await scene.last(ToolSkipped)
    assert "fly" in skipped.reason
    assert "deploy, pay, read, save" in skipped.reason


async def test_arguments_that_do_not_fit_are_told_to_the_model_and_nothing_runs():
    scene = SessionHarness([asks_for(("pay", {"to": 7})), says("well")])
    scene.outside.check_call = lambda tool, _: f"`to` is 7; the schema is {tool.parameters}"

    await scene.begin()

    assert [] == scene.executor.starts
    assert "the schema is {'type': 'object'}" in await scene.told()


async def test_what_ends_while_something_else_is_recorded_is_not_asked_for_again():
    valve = Valve()

    async def act(order):
        return await valve() if order.arguments["n"] else "at once"

    async def let_the_other_end():
        valve.opened.set()
        await take_turns()

    scene = SessionHarness(
        [asks_for(("read", {"n": 0}), ("read", {"n": 1})), says("done")], act=act
    )
    await scene.begin(Interrupted({"before ToolReturned": let_the_other_end}))

    count = await scene.count()
    assert (2, 0) == (count["ToolReturned"], count["OutcomeCameLate"])
