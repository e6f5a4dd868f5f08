"""A runner: who may have it do what, and what it remembers."""

import asyncio

import pytest
from msgspec.structs import replace

from cueline.actors.runner import KEPT_SECONDS, CallName
from cueline.actors.tool_port import ToolOrder
from cueline.deciders.session import order_digest
from cueline.errors import RunnerBusyError, StaleOrderError, ToolFailedError, ToolImportError
from cueline.stores.waiting import take_turns
from cueline.testing.fakes import JournalingExecutor, tool_spec
from tests.actors.session_harness import SESSION, Valve, fine, runner_on

PAY = tool_spec("pay")


def order(effect="1.0", attempt=1, epoch=1, runner="r1", **changes):
    digest = order_digest(
        session=SESSION, effect=effect, tool="pay", tool_digest=PAY.digest, arguments={},
        workspace=None,
    )  # fmt: skip
    asked = ToolOrder(
        session=SESSION, effect=effect, attempt=attempt, key=f"{SESSION}/{effect}", runner=runner,
        epoch=epoch, tool=PAY, arguments={}, workspace=None, digest=digest,
    )  # fmt: skip
    return replace(asked, **changes)


def name(effect="1.0", attempt=1, epoch=1, runner="r1"):
    return CallName(SESSION, f"{SESSION}/{effect}", attempt, runner, epoch)


def runner(act=fine, **options):
    return runner_on(JournalingExecutor({"pay": act}), **options)


async def test_a_call_that_is_asked_for_twice_runs_once():
    valve = Valve()
    served = runner(valve)
    both = asyncio.gather(served.execute(order()), served.execute(order(epoch=2)))
    await take_turns()

    valve.opened.set()

    assert [b"at last", b"at last"] == [report.content for report in await both]
    assert 1 == valve.began


# So a runner that is to retire ends no call whose outcome nobody has.
async def test_a_call_is_settled_when_its_owner_has_recorded_the_outcome():
    valve = Valve()
    served = runner(valve)
    asking = asyncio.create_task(served.execute(order()))
    await take_turns()
    running = served.unsettled
    valve.opened.set()
    await asking
    await take_turns()
    unrecorded = served.unsettled

    served.forget(name())

    assert (1, 1, 0) == (running, unrecorded, served.unsettled)


async def test_an_outcome_that_nobody_records_is_settled_after_a_while():
    now = [0.0]
    served = runner_on(JournalingExecutor({"pay": fine}), now=lambda: now[0])
    await served.execute(order())
    await take_turns()
    before = served.unsettled

    now[0] += KEPT_SECONDS + 1

    assert (1, 0) == (before, served.unsettled)


async def test_the_calls_of_an_earlier_turn_are_settled():
    served = runner()
    await served.execute(order())
    await take_turns()

    await served.outcome(name("2.0"))

    assert 0 == served.unsettled


async def test_a_runner_that_retires_starts_no_call():
    served = runner()
    served.refuse()

    with pytest.raises(RunnerBusyError):
        await served.execute(order())


async def test_never_seen_also_means_never_will():
    # DESIGN 5: so the call may be started anew.
    served = runner()
    assert await served.outcome(name()) is None

    with pytest.raises(StaleOrderError):
        await served.execute(order())


async def test_a_former_owner_is_refused():
    # I3, DESIGN 5
    served = runner()
    await served.outcome(name(epoch=2))

    for ask in (
        served.execute(order(epoch=1)),
        served.outcome(name()),
        served.cancel(name()),
        served.reconcile(order(epoch=1)),
    ):
        with pytest.raises(StaleOrderError):
            await ask


async def test_a_former_owner_has_nothing_forgotten():
    # I3
    served = runner()
    await served.execute(order(epoch=2))

    served.forget(name(epoch=1))

    assert await served.outcome(name(epoch=2)) is not None


async def test_another_incarnation_is_refused():
    served = runner()

    with pytest.raises(StaleOrderError):
        await served.execute(order(runner="r0"))


async def test_a_call_continues_after_its_caller_is_cancelled():
    valve = Valve()
    served = runner(valve)
    asking = asyncio.create_task(served.execute(order()))
    await take_turns()
    asking.cancel()
    await asyncio.wait([asking])

    valve.opened.set()

    assert b"at last" == (await served.outcome(name(epoch=2))).content


async def test_a_runner_that_ends_is_busy_before_it_has_begun_anything():
    served = runner()
    await served.close()

    with pytest.raises(RunnerBusyError):
        await served.execute(order())

    assert [] == served._executor.starts


async def test_a_call_that_is_stopped_before_its_first_step_was_not_started():
    served = runner()
    asking = asyncio.create_task(served.execute(order()))
    while not served.unsettled:
        await take_turns()

    await served.cancel(name())

    assert (await asking).kind in {"not_started", "cancelled"}
    served.forget(name())
    assert 0 == served.unsettled


async def test_what_is_not_what_was_granted_is_not_run():
    # I9, C18
    served = runner()

    report = await served.execute(order(arguments={"to": "eve"}))

    assert "not_granted" == report.kind
    assert [] == served._executor.starts


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ToolFailedError("timeout", "300 s"), "timeout"),
        (ToolImportError("tests:pay", "there is no such tool"), "tool_error"),
        (RuntimeError("a bug"), "tool_error"),
    ],
)
async def test_whatever_goes_wrong_in_a_tool_is_its_report(error, kind):
    async def fail(_):
        raise error

    report = await runner(fail).execute(order())

    assert ("failed", kind) == (report.outcome, report.kind)


class MuteError(Exception):
    def __str__(self):
        raise RuntimeError("it has no text")


class Panic(BaseException):
    pass


@pytest.mark.parametrize(("error", "told"), [(MuteError(), "RuntimeError"), (Panic(), "Panic")])
async def test_a_call_that_its_runner_failed_in_is_none_that_never_began(error, told):
    # I5: what never began may be run again.
    async def fail(_):
        raise error

    report = await runner(fail).execute(order())

    assert ("failed", "killed") == (report.outcome, report.kind)
    assert told in report.message


async def test_a_failure_tells_how_long_the_call_took():
    async def fail(_):
        raise ToolFailedError("timeout", "300 s")

    times = iter([100.0, 102.5])
    report = await runner(fail, now=lambda: next(times)).execute(order())

    assert 2.5 == report.seconds


async def test_a_result_is_kept_until_its_owner_has_recorded_it():
    # I2: and barred afterwards.
    served = runner()
    await served.execute(order())
    assert await served.outcome(name()) is not None

    served.forget(name())

    assert await served.outcome(name()) is None


async def test_a_report_stays_what_it_was_when_its_call_is_long_over():
    # I5: the host that asked may die before it records it.
    served = runner()
    told = await served.execute(order())
    await take_turns()

    await served.cancel(name(epoch=2))

    assert told == await served.outcome(name(epoch=2))
    assert "returned" == told.outcome


async def test_what_runs_is_not_forgotten():
    valve = Valve()
    served = runner(valve)
    asking = asyncio.create_task(served.execute(order()))
    await take_turns()

    served.forget(name())
    valve.opened.set()

    assert "returned" == (await asking).outcome
    assert await served.outcome(name()) is not None


async def test_a_runner_remembers_one_turn_of_a_session():
    # Its memory is bounded by the sessions, not by the calls.
    served = runner()
    for turn in range(1, 100):
        await served.execute(order(f"{turn}.0"))

    assert 1 == len(served._served[SESSION].calls)
    with pytest.raises(StaleOrderError):
        await served.execute(order("1.0"))


async def test_a_tool_that_cannot_say_leaves_its_call_in_doubt():
    class Silent(JournalingExecutor):
        async def reconcile(self, order):
            raise ToolFailedError("tool_error", "the service is down")

    found = await runner_on(Silent({})).reconcile(order(runner=""))

    assert "unknown" == found.outcome


async def test_closing_kills_what_runs():
    valve = Valve()
    served = runner(valve)
    asking = asyncio.create_task(served.execute(order()))
    while not valve.began:
        await take_turns()

    await served.close()

    assert "cancelled" == (await asking).kind
    assert served._executor.closed
