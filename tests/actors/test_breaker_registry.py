"""Breakers on the log, as hosts meet and tell them (004-005, 004-057; C4, D37)."""

import pytest

from cueline.actors.breaker_registry import BreakerRegistry, stream_safe
from cueline.actors.entity import RETRY_SECONDS
from cueline.errors import LogUnavailableError, ProviderRefusedError, ProviderUnavailableError
from cueline.events.agent import ModelChoice
from cueline.events.agent_parts import BreakerPolicy
from cueline.events.codes import Cause
from cueline.events.inbox import ModelChangeAsked
from cueline.events.store import Draft, Write
from cueline.events.stream import check_stream, sibling
from cueline.testing.clock import take_turns
from cueline.testing.crash import CrashPoint, World
from cueline.testing.fakes import agent_spec
from tests.actors.crowd import ACCOUNT, AGENT, MODEL, Crowd, Tapped, opened


async def test_failures_of_several_sessions_open_the_breaker_that_they_share():
    crowd, _ = await opened()

    assert [*["FailureCounted"] * 3, "BreakerOpened"] == await crowd.types()


async def test_a_failure_is_counted_with_the_calls_that_went_well_before_it():
    crowd = Crowd()
    ill, crowd.provider.fault = crowd.provider.fault, None
    await crowd.start(4)
    world = await crowd.world()

    crowd.provider.fault = ill
    await crowd.start(1)
    await crowd.tick(world)

    (counted,) = (await crowd.breaker())[1]
    assert 4 == counted.successes


# 004-018, I14
async def test_a_session_that_comes_to_an_open_breaker_waits_with_a_deadline():
    crowd, _ = await opened()
    (late,) = await crowd.start()
    await crowd.clock.settle()

    (wait,) = await crowd.waits(late)
    state, _ = await crowd.breaker()
    cause = Cause(code="breaker_open", dependency="fake fake", failure="overloaded")
    assert (cause, state.until) == (wait.cause, wait.deadline_at)
    assert ("waiting", 3) == (await crowd.status(late), len(crowd.provider.asked))


async def test_another_process_on_the_log_keeps_to_it():
    crowd, _ = await opened()
    await crowd.world()
    (late,) = await crowd.start()
    await crowd.clock.settle()

    assert 1 == len(await crowd.waits(late))
    assert 3 == len(crowd.provider.asked)


async def test_a_process_that_follows_learns_of_what_another_one_opened():
    crowd = Crowd()
    (first,) = await crowd.start()
    one = await crowd.world()
    two = World(crowd.outside)
    await two.host.activate_all([first])
    await crowd.start(2)
    await crowd.tick(one)
    (late,) = await crowd.start()
    await two.host.activate_all([late])
    await crowd.clock.settle()

    assert 1 == len(await crowd.waits(late))


class Slow(CrashPoint):
    """A process to which the log takes its time to answer."""

    async def go_on(self):
        await super().go_on()
        await take_turns()


async def test_concurrent_first_calls_in_a_new_process_obey_an_open_breaker():
    # 000-007: the first of them reads it, and the others wait until it is read.
    crowd, world = await opened()
    await world.kill()
    asked = len(crowd.provider.asked)
    late = await crowd.start(5)
    await crowd.world(Slow())

    assert asked == len(crowd.provider.asked)
    assert [1] * 5 == [len(await crowd.waits(stream)) for stream in late]


async def test_a_breaker_that_could_not_be_read_is_read_again():
    crowd, first = await opened()
    await first.kill()
    (late,) = await crowd.start()
    failures = [LogUnavailableError("log.db", "it does not answer")]

    def tap(what, stream):
        if (what, stream) == ("read", MODEL) and failures:
            raise failures.pop()

    crowd.outside.store = Tapped(crowd.outside.store, tap)
    world = World(crowd.outside)
    await crowd.tick(world, world)

    assert (1, []) == (len(await crowd.waits(late)), failures)


async def test_it_survives_the_restart_of_everything():
    crowd, world = await opened()
    await world.kill()
    (late,) = await crowd.start()
    await crowd.world()

    assert (1, 3) == (len(await crowd.waits(late)), len(crowd.provider.asked))


# Short commands count together: each is a process of its own.
async def test_failures_of_processes_that_lived_one_after_the_other_count_together():
    crowd = Crowd()
    for _ in range(3):
        await crowd.start()
        await (await crowd.world()).kill()

    assert "BreakerOpened" == (await crowd.types())[-1]


async def test_what_will_not_pass_never_counts():
    crowd = Crowd(ProviderRefusedError("auth", "no"))
    await crowd.start(9)
    await crowd.world()

    assert [] == await crowd.types()


LIMITED = ProviderUnavailableError("rate_limited", "slow down", 30.0)
OTHER = {"provider": "fake", "model": "other"}


async def test_a_retry_after_holds_the_model_for_all_sessions():
    crowd = Crowd(LIMITED)
    await crowd.start()
    world = await crowd.world()
    held_until = (await crowd.breaker())[0].held_until
    late = await crowd.start(2)
    await crowd.clock.settle()
    asked = len(crowd.provider.asked)
    crowd.provider.fault = None
    await crowd.clock.advance(30)
    await crowd.tick(world)

    assert (1, ["BreakerHeld"], []) == (asked, await crowd.types(), await crowd.types(ACCOUNT))
    assert {held_until} == {(await crowd.waits(s))[0].deadline_at for s in late}
    assert {"completed"} == {await crowd.status(stream) for stream in late}


async def test_another_model_of_the_account_is_asked_while_one_is_held():
    crowd = Crowd(LIMITED)
    await crowd.start()
    await crowd.world()
    crowd.provider.fault = None
    crowd.agent = agent_spec(**{**AGENT, **OTHER})
    (late,) = await crowd.start()
    await crowd.clock.settle()

    assert ("completed", []) == (await crowd.status(late), await crowd.waits(late))


async def test_a_fallback_of_the_same_account_answers_for_a_limited_model():
    crowd = Crowd(LIMITED, fallback=[OTHER])
    crowd.provider.only = "fake"
    (stream,) = await crowd.start()
    await crowd.world()

    assert ("completed", []) == (await crowd.status(stream), await crowd.waits(stream))


async def test_a_switch_to_another_model_of_the_account_ends_the_wait_for_a_limited_one():
    crowd = Crowd(LIMITED)
    crowd.provider.only = "fake"
    await crowd.start()
    world = await crowd.world()
    (late,) = await crowd.start()
    await crowd.clock.settle()
    await crowd.outside.say(late, ModelChangeAsked(model=ModelChoice(**OTHER)))
    await crowd.tick(world)

    assert (1, "completed") == (len(await crowd.waits(late)), await crowd.status(late))


async def test_a_key_refused_for_a_named_time_holds_every_model_of_its_account():
    crowd = Crowd(ProviderRefusedError("auth", "the quota is empty", retry_after=30.0))
    await crowd.start()
    await crowd.world()
    crowd.agent = agent_spec(**{**AGENT, **OTHER})
    (late,) = await crowd.start()
    await crowd.clock.settle()

    assert (["BreakerHeld"], []) == (await crowd.types(ACCOUNT), await crowd.types())
    assert "auth" == (await crowd.waits(late))[0].cause.failure


async def test_an_open_breaker_is_of_one_model_alone():
    crowd, _ = await opened()
    crowd.provider.fault = None
    crowd.agent = agent_spec(**{**AGENT, "model": "other"})
    (late,) = await crowd.start()
    await crowd.clock.settle()

    assert "completed" == await crowd.status(late)


async def test_an_agent_may_use_another_model_meanwhile():
    crowd, _ = await opened(breaker={"threshold": 3, "on_open": "fallback"})
    crowd.provider.fault = None
    other = {"provider": "fake", "model": "other"}
    fields = {**AGENT, "breaker": {"threshold": 3, "on_open": "fallback"}, "fallback": [other]}
    crowd.agent = agent_spec(**fields)
    (late,) = await crowd.start()
    await crowd.clock.settle()

    types = [fact.type for fact in await crowd.outside.facts(late)]
    assert "completed" == await crowd.status(late)
    assert ["SessionWaiting", "PromptPrefixChanged", "ModelRequested", "ModelStarted"] == types[2:6]


# I8: nothing is reserved for a call that is kept back.
async def test_a_breaker_is_asked_before_the_ledger():
    crowd, world = await opened(limits={"max_tokens": 100_000})
    (late,) = await crowd.start()
    await crowd.clock.settle()
    reserved = await crowd.types(sibling(late, "budget"))
    crowd.provider.fault = None
    await crowd.clock.advance(60)
    await crowd.tick(world)

    assert (1, []) == (len(await crowd.waits(late)), reserved)
    assert ["BudgetOpened", "CostReserved", "CostSettled"] == await crowd.types(
        sibling(late, "budget")
    )
    assert "completed" == await crowd.status(late)


# 004-020: what never went out is no retry.
async def test_a_wait_for_a_breaker_is_no_attempt():
    crowd, world = await opened()
    (late,) = await crowd.start()
    await crowd.clock.advance(60)
    crowd.provider.fault = None
    await crowd.tick(world)

    facts = await crowd.outside.facts(late)
    assert [1] == [fact.attempt for fact in facts if fact.type == "ModelStarted"]


async def test_a_turn_with_a_closed_breaker_costs_it_neither_a_read_nor_an_append():
    crowd = Crowd()
    crowd.provider.fault = None
    touched = []
    crowd.outside.store = Tapped(crowd.outside.store, lambda _, stream: touched.append(stream))
    await crowd.start(5)
    await crowd.world()
    assert {MODEL, ACCOUNT} <= set(touched)

    touched.clear()
    await crowd.start(5)
    await crowd.clock.settle()
    assert [] == [stream for stream in touched if stream.startswith("breaker")]


async def test_a_failure_that_cannot_be_written_down_yet_is_written_later():
    crowd = Crowd()
    failures = [LogUnavailableError("log.db", "the disk is full")]

    def tap(what, stream):
        if (what, stream) == ("append", MODEL) and failures:
            raise failures.pop()

    crowd.outside.store = Tapped(crowd.outside.store, tap)
    await crowd.start()
    await crowd.world()
    assert [] == await crowd.types()

    await crowd.clock.advance(RETRY_SECONDS)

    assert ["FailureCounted"] == await crowd.types()


async def test_an_unreadable_breaker_blocks_no_calls():
    crowd, world = await opened()
    await world.kill()
    crowd.provider.fault = None
    version = (await crowd.outside.store.head(MODEL)).version
    juggled = Draft(type="BreakerJuggled", schema=1, payload=b"{}", occurred_us=1, actor="host")
    await crowd.outside.store.append([Write(MODEL, [juggled], version)], key="of a newer cueline")
    newer = World(crowd.outside)
    (late,) = await crowd.start()
    await crowd.tick(newer)

    assert [MODEL] == [stream for stream, _ in newer.troubles]
    assert "completed" == await crowd.status(late)


@pytest.mark.parametrize(
    "name",
    [
        *("claude-opus-4-6", "gpt-4.1", "A/B", "..", "ü", "x" * 300, "a--b", "-", "a.-b", "a-.b"),
        "/root/.cache/models/qwen.gguf",
    ],
)
def test_a_name_becomes_a_part_of_a_stream(name):
    check_stream(f"breaker-default/x.{stream_safe(name)}")


def test_two_names_are_two_breakers():
    names = ["a-b", "a--b", "A-b", "a b", "x" * 60, "x" * 61]

    assert len(names) == len({stream_safe(name) for name in names})


def account(agent):
    return stream_safe(f"{agent.base_url} {agent.key_variable}")


def of_models(*agents):
    """Return what stands before the model of each of *agents*, where accounts go by their key."""
    breakers = BreakerRegistry("h", None, None, account=account, report=None)
    return [breakers.of_model("default", agent) for agent in agents]


def test_of_agents_that_share_a_model_each_goes_by_its_own_rules():
    strict, lenient = (agent_spec(breaker=BreakerPolicy(threshold=n)) for n in (1, 9))

    first, second, again = of_models(strict, lenient, strict)

    assert first.streams == second.streams
    assert (strict.breaker, lenient.breaker) == (first.policy, second.policy)
    assert first == again


@pytest.mark.parametrize("other", [{"key_variable": "OTHER_KEY"}, {"base_url": "http://there"}])
def test_of_agents_with_accounts_of_their_own_each_has_its_own_breakers(other):
    first, second = of_models(agent_spec(), agent_spec().model_copy(update=other))

    assert not {*first.streams} & {*second.streams}
