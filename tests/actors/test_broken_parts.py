"""What a session works with fails for good: it says so, and does not ask at once again."""

from decimal import Decimal

from cueline.actors.approval_gate import ApprovalGate
from cueline.actors.cost_ledger import CostLedger
from cueline.actors.entity import RETRY_SECONDS
from cueline.errors import CorruptEventError
from cueline.events.agent import Hook, Limits, Policy
from cueline.events.inbox import StopAsked
from cueline.events.session import PeopleNotified
from cueline.testing.fakes import asks_for, says
from tests.actors.session_harness import SessionHarness


class Broken:
    """What fails whenever it is asked for one thing."""

    def __init__(self, whole, broken, error):
        self.calls = 0
        self._whole = whole
        self._broken = broken
        self._error = error

    def __getattr__(self, name):
        return self._fail if name == self._broken else getattr(self._whole, name)

    async def _fail(self, *_):
        self.calls += 1
        assert self.calls < 100, "it is asked without a pause"
        raise self._error


async def test_a_ledger_that_cannot_settle_is_not_pestered():
    error = CorruptEventError("budget-a", 3, 9, "bits flipped")
    place = SessionHarness([says("Done.")], limits=Limits(max_cost=Decimal(1)))
    ledger = Broken(CostLedger(place.outside.journal), "settle", error)
    place.outside.ledger = ledger
    await place.begin()
    assert 1 == ledger.calls
    await place.clock.advance(RETRY_SECONDS)

    assert 2 == ledger.calls
    await place.clock.advance(600)
    assert ledger.calls < 30
    assert f"{type(error).__name__}: {error}" == (await place.state()).hold.cause.message


async def test_a_bug_of_the_ledger_pauses_the_session_until_a_person_resumes_it():
    place = SessionHarness([says("Done.")], limits=Limits(max_cost=Decimal(1)))
    place.outside.ledger = Broken(
        CostLedger(place.outside.journal), "settle", ZeroDivisionError("a bug")
    )
    world = await place.begin()
    await place.clock.advance(600)

    assert 1 == place.outside.ledger.calls
    assert "ZeroDivisionError: a bug" in (await place.state()).hold.cause.message
    assert [] == await world.host.active()


async def test_a_gate_that_cannot_supersede_is_not_pestered():
    place = SessionHarness([asks_for(("deploy", {}))])
    gate = Broken(ApprovalGate(place.outside.journal), "supersede", ZeroDivisionError("a bug"))
    await place.outside.start("s", place.agent)
    await place.world(gate=gate)
    await place.say(StopAsked(reason="enough"))

    assert 1 == gate.calls


async def test_a_failed_hook_is_recorded_and_the_session_continues():
    hook = Hook(on="asked", command=("tell",))
    place = SessionHarness([asks_for(("deploy", {})), says("Done.")], policy=Policy(hooks=(hook,)))

    async def tell(*_):
        raise ZeroDivisionError("a bug")

    place.outside.tell = tell
    await place.begin()

    assert "ZeroDivisionError: a bug" == (await place.last(PeopleNotified)).problem
    assert "approval" == (await place.state()).waiting.kind
