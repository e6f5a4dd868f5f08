"""Kill a session that people have a say in, at every point, and go on (I9, C16).

A call that one person edits and allows for the rest of the session, one that
takes two people, one that a rule denies, one that people are told of, and one
that is covered by what was allowed before.
"""

from functools import partial

from cueline.deciders.policy import exact_scope
from cueline.deciders.session import Status
from cueline.events.inbox import DecisionGiven
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    PeopleNotified,
    ToolSkipped,
    ToolStarted,
)
from cueline.testing.crash import Outside
from cueline.testing.fakes import (
    JournalingExecutor,
    TurnModel,
    agent_spec,
    asks_for,
    says,
    tool_spec,
)
from tests.crash import story
from tests.crash.undisturbed import Undisturbed

TOOLS = (
    tool_spec("read", "read_only"),
    tool_spec("save", "idempotent"),
    tool_spec("post", "idempotent"),
    tool_spec("deploy", sensitive=True),
)
SAID = [
    asks_for(("deploy", {"n": 1}), ("save", {"n": 2}), ("post", {"n": 3})),
    asks_for(("deploy", {"n": 4}), ("read", {"n": 5})),
    says("All is done."),
]
POLICY = {
    "rules": [
        {"name": "two", "answer": "ask", "tools": ["save"], "votes": 2},
        {"name": "never", "answer": "deny", "tools": ["post"]},
        {"name": "told", "answer": "notify", "tools": ["read"]},
    ],
    "hooks": [
        {"on": "asked", "command": ["tell"]},
        {"on": "notify", "command": ["tell"]},
    ],
}


class Journal(JournalingExecutor):
    """Writes down with what each call ran, too."""

    ran = ()

    async def call(self, order):
        self.ran = (*self.ran, (order.effect, order.arguments["n"]))
        return await super().call(order)


async def act(order):
    return f"{order.tool.name} {order.arguments['n']} is done"


def outside(said=SAID):
    executor = Journal(dict.fromkeys((tool.name for tool in TOOLS), act))
    return Outside.new(TurnModel(said), executor), agent_spec(*TOOLS, policy=POLICY)


async def answer(place, session):
    """Have two people answer whatever is asked; say whether anything was."""
    asked = [call for call in (await place.state(story.SESSION)).open_calls if call.asking]
    for call in asked:
        happened = any(start.key.endswith(call.effect) for start in place.executor.starts)
        said = "happened" if happened else "run_again"
        more = {}
        if call.effect == "1.0" and call.approval.question == "may_it_run":
            more = {"edit": {"n": 11}, "always": (exact_scope({"n": 4}),)}
        for person in ("ann", "bob"):
            decision = DecisionGiven(
                approval=call.approval.id,
                digest=call.approval.digest,
                verdict="grant",
                by=person,
                resolution=None if call.approval.question == "may_it_run" else said,
                **more,
            )
            await place.say(story.SESSION, decision)
    return asked


drive = partial(story.drive, go_on=answer)
WHOLE = Undisturbed(outside, drive)
GRANTED = {("1.0", 11), ("1.1", 2), ("2.0", 4), ("2.1", 5)}
"""What may run, with what: nothing that was denied, and the first as it was changed."""


async def assert_ended_the_same(place):
    assert Status.COMPLETED == (await place.state(story.SESSION)).status
    await WHOLE.check_told(place)
    assert GRANTED == set(place.executor.ran)


async def test_what_is_killed_here_is_all_that_people_can_say():
    facts = await WHOLE.place.facts(story.SESSION)

    rules = [fact.rule for fact in facts if isinstance(fact, ToolStarted)]
    assert ["granted by ann", "granted by ann, bob", "always allowed by ann", "told"] == rules
    assert ["never"] == [fact.rule for fact in facts if isinstance(fact, ToolSkipped)]
    assert 2 == sum(isinstance(fact, ApprovalRequested) for fact in facts)
    assert [{"n": 11}, None] == [f.edit for f in facts if isinstance(f, ApprovalResolved)]
    assert 3 == sum(isinstance(fact, PeopleNotified) for fact in facts)
    await assert_ended_the_same(WHOLE.place)


@WHOLE.at_every_point
async def test_a_killed_session_ends_as_if_nothing_had_happened(point):
    place = await WHOLE.killed(point)

    await assert_ended_the_same(place)
    # I5: what is not declared began at most once.
    keys = [start.key for start in place.executor.starts if start.tool == "deploy"]
    assert len(keys) == len(set(keys))


@WHOLE.after_every_event
async def test_a_log_cut_after_any_event_goes_on_to_the_same_end(position):
    # I13
    place = await WHOLE.cut(position, SAID)

    assert Status.COMPLETED == (await place.state(story.SESSION)).status
    await WHOLE.check_told(place)
    assert set(place.executor.ran) <= GRANTED
