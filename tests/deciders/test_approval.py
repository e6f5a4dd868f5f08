"""The rules of one approval."""

import pytest
from msgspec.structs import replace

from cueline.deciders.approval import (
    APPROVAL,
    Expire,
    Open,
    Supersede,
    Vote,
    auto_approver,
    grant_note,
    refusal,
    valid_until,
)
from cueline.events.approval import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalOpened,
    ApprovalSuperseded,
    VoteGiven,
)
from cueline.events.event_text import RESOLUTIONS, refusal_text
from cueline.testing.given import given_past
from tests.session_example import NOW, agent, later

OPENED = ApprovalOpened(
    session="session-default/1",
    effect="1.0",
    digest="of this",
    question="may_it_run",
    tool="delete",
    arguments={"path": "a.ts"},
    summary="delete(path='a.ts')",
    epoch=1,
    opened_at=NOW,
    deadline_at=later(300),
)


def refusal_of(state, vote):
    return refusal_text(refusal(state, vote))


def vote(verdict="grant", digest="of this", at=NOW, message="inbox@2", by="ada", **more):
    return Vote(verdict, digest, by, "", message, at, **more)


def asked(**more):
    return OPENED.model_copy(update=more)


def given(*facts):
    return given_past(APPROVAL, *facts)


# 000-025
def test_a_question_shows_what_is_asked_and_until_when():
    given().when(Open(OPENED)).then(OPENED)


def test_a_question_is_opened_once():
    given(OPENED).when(Open(OPENED)).then_nothing()


# 000-027
def test_an_automatic_grant_is_recorded_with_its_question():
    given().when(Open(OPENED, "auto:cli-flag")).then(OPENED, ApprovalGranted(by="auto:cli-flag"))


@pytest.mark.parametrize(
    ("verdict", "fact"), [("grant", ApprovalGranted), ("deny", ApprovalDenied)]
)
def test_a_vote_decides(verdict, fact):
    given(OPENED).when(vote(verdict)).then(VoteGiven, fact)


# 000-053, C18
@pytest.mark.parametrize(
    ("late", "reason"),
    [
        (vote(digest="of that"), "something else"),
        (vote(at=later(301)), "after the deadline"),
    ],
)
def test_a_vote_that_does_not_count_changes_nothing(late, reason):
    past = given(OPENED).when(late).then_nothing()

    assert reason in refusal_of(past.state, late)


# I14: it counts when the log recorded it.
def test_a_vote_recorded_at_the_deadline_counts():
    given(OPENED).when(vote(at=later(300))).then(VoteGiven, ApprovalGranted)


# I9, I14: whoever gave it in time need not know that nothing ran.
@pytest.mark.parametrize(("read", "until"), [(0, None), (300, None), (301, 301 + 300)])
def test_a_grant_counts_until_its_deadline_or_for_a_while_after_it_was_read(read, until):
    counts = valid_until(later(300), later(read))

    assert counts == (None if until is None else later(until))


def test_a_vote_on_nothing_changes_nothing():
    past = given().when(vote()).then_nothing()

    assert "there is no such approval" == refusal_of(past.state, vote())


# I13: a log may be cut between the two facts of one append.
def test_a_vote_whose_verdict_was_cut_off_still_brings_it():
    counted = VoteGiven(verdict="grant", by="ada", message="inbox@2", recorded_at=NOW)

    given(OPENED, counted).when(vote()).then(ApprovalGranted)


def test_a_verdict_is_final():
    past = given(OPENED).when(vote())

    past.when(vote("deny", message="inbox@3")).then_nothing()
    past.when(Expire(later(301))).then_nothing()
    past.when(Supersede("steer")).then_nothing()
    assert "already granted" == refusal_of(past.state, vote("deny", message="inbox@3"))


# 000-026
def test_a_question_expires_at_its_deadline_and_not_before():
    given(OPENED).when(Expire(later(299))).then_nothing()
    past = given(OPENED).when(Expire(later(300))).then(ApprovalExpired(at=later(300)))

    assert "already expired" == refusal_of(past.state, vote())


def test_a_question_whose_need_has_ended_is_superseded_and_neither_answered_nor_expires():
    past = given(OPENED).when(Supersede("stop")).then(ApprovalSuperseded(reason="stop"))

    past.when(vote(), Expire(later(300)), Supersede("steer")).then_nothing()
    assert "already superseded" == refusal_of(past.state, vote())


# It is what the agent is told.
def test_why_it_was_denied_is_kept():
    past = given(OPENED).when(replace(vote("deny"), note="not today"))

    assert ("denied", "ada", "not today") == (past.state.verdict, past.state.by, past.state.note)


# Two people have to allow it; a person counts once.
def test_several_people_may_have_to_allow_it():
    past = given(asked(votes=2)).when(vote()).then(VoteGiven)

    again = vote(message="inbox@3")
    past.when(again).then_nothing()
    assert "ada has allowed it already, and it takes 2 people" == refusal_of(past.state, again)
    past.when(vote(by="bob", message="inbox@4")).then(VoteGiven, ApprovalGranted(by="ada, bob"))


def test_one_denial_is_enough():
    past = given(asked(votes=2)).when(vote())

    past.when(vote("deny", by="bob", message="inbox@3")).then(VoteGiven, ApprovalDenied)


# I13
def test_a_denial_whose_verdict_was_cut_off_is_no_grant():
    denied = VoteGiven(verdict="deny", by="bob", message="inbox@2", recorded_at=NOW)

    given(asked(votes=2), denied).when(vote(message="inbox@3")).then(VoteGiven)


def test_a_person_who_granted_may_still_deny():
    past = given(asked(votes=2)).when(vote())

    past.when(vote("deny", message="inbox@3")).then(VoteGiven, ApprovalDenied)


# C17: who may confirm; the one that proposed it may not.
@pytest.mark.parametrize(
    ("opened", "by", "reason"),
    [
        ({"excluded": ("ada",)}, "ada", "ada asked for the session, and may not allow it"),
        ({"may_grant": (("b*", "carl"),)}, "ada", "ada may not allow it; b* or carl may"),
        ({"may_grant": (("a*",), ("bob",))}, "ada", "ada may not allow it; bob may"),
        ({}, "agent:7f3a", "agent:7f3a is no person"),
        ({}, "session:7f3a", "session:7f3a is no person"),
        ({}, "auto:mine", "auto:mine is no person"),
        ({}, "", "one without a name is no person"),
    ],
)
def test_a_grant_of_somebody_who_may_not_give_it_changes_nothing(opened, by, reason):
    past = given(asked(**opened)).when(vote(by=by)).then_nothing()

    assert reason == refusal_of(past.state, vote(by=by))


def test_anybody_may_deny():
    given(asked(excluded=("ada",))).when(vote("deny")).then(VoteGiven, ApprovalDenied)


# I9, C18: an edit has a digest of its own, and both are recorded.
def test_a_grant_may_change_the_arguments():
    edited = replace(vote(edit={"path": "b.ts"}, edit_digest="of that"), note="not a.ts")

    past = given(OPENED).when(edited)

    past.then(
        VoteGiven(
            verdict="grant",
            by="ada",
            note="not a.ts",
            edit={"path": "b.ts"},
            message="inbox@2",
            recorded_at=NOW,
        ),
        ApprovalGranted(by="ada", note="not a.ts", edit={"path": "b.ts"}, digest="of that"),
    )
    assert "of this" == past.state.opened.digest
    assert ({"path": "b.ts"}, "of that") == (past.state.edit, past.state.digest)


@pytest.mark.parametrize("more", [{"edit": {}}, {"always": ("a/**",)}])
def test_one_of_several_can_neither_change_nor_extend_it(more):
    past = given(asked(votes=2)).when(vote(**more)).then_nothing()

    assert "neither change nor extend" in refusal_of(past.state, vote(**more))


def test_what_happened_is_neither_changed_nor_allowed_for_later():
    past = given(asked(question="did_it_happen"))

    for more in ({"edit": {}}, {"always": ("a/**",)}):
        changed = vote(resolution="run_again", **more)
        past.when(changed).then_nothing()
        assert "only a call that waits to run" in refusal_of(past.state, changed)
    past.when(vote(resolution="happened")).then(VoteGiven, ApprovalGranted)


# I5: each answer has another consequence, so none is taken for another.
@pytest.mark.parametrize("more", [{}, {"resolution": "do_not_run"}, {"verdict": "deny"}])
def test_a_call_in_doubt_needs_an_explicit_resolution(more):
    past = given(asked(question="did_it_happen")).when(vote(**more)).then_nothing()

    reason = refusal_of(past.state, vote(**more))
    for resolution, then in RESOLUTIONS.items():
        assert f"{resolution} ({then})" in reason


@pytest.mark.parametrize("more", [{"resolution": "happened"}, {"result": "sent"}])
def test_only_a_call_in_doubt_is_said_to_have_happened(more):
    past = given(OPENED).when(vote(**more)).then_nothing()

    assert "not what became of it" in refusal_of(past.state, vote(**more))


def test_only_what_happened_has_a_result():
    again = vote(resolution="run_again", result="sent")

    assert "only a call that happened" in refusal_of(
        given(asked(question="did_it_happen")).state, again
    )


def test_what_is_said_of_a_call_in_doubt_is_kept_by_its_code():
    past = given(asked(question="did_it_happen"))

    past.when(vote(resolution="happened", result="no. 8"))

    said = [(fact.resolution, fact.result) for fact in past.facts]
    assert [("happened", "no. 8")] * 2 == said
    assert ("happened", "no. 8") == (past.state.resolution, past.state.result)


def test_that_a_call_is_not_to_run_is_kept_by_its_code():
    past = given(asked(question="did_it_happen"))

    past.when(vote("deny", resolution="do_not_run"))

    past.then(VoteGiven, ApprovalDenied(by="ada", resolution="do_not_run"))
    assert "do_not_run" == past.state.resolution


def test_a_grant_may_be_for_the_rest_of_the_session():
    given(OPENED).when(vote(always=("a.ts",))).then(
        VoteGiven, ApprovalGranted(by="ada", always=("a.ts",))
    )


IN_TIME = asked(auto_at=later(3), auto_by="auto:auto_approve_after")


# 003-058, C15, C20: a veto within the time wins, and nobody else is needed.
def test_an_approval_without_a_denial_is_granted_automatically():
    given(IN_TIME).when(Expire(later(2))).then_nothing()
    given(IN_TIME).when(Expire(later(3))).then(ApprovalGranted(by="auto:auto_approve_after"))


def test_a_veto_in_time_wins():
    past = given(IN_TIME).when(vote("deny")).then(VoteGiven, ApprovalDenied)

    past.when(Expire(later(3))).then_nothing()


def test_what_is_looked_at_only_after_its_deadline_has_expired():
    given(IN_TIME).when(Expire(later(300))).then(ApprovalExpired)


# C17: what the agent is told of a grant.
@pytest.mark.parametrize(
    ("given_", "told"),
    [
        (vote(), ""),
        (replace(vote(), note="once"), "ada allowed the call of delete (once)"),
        (vote(edit={"a": 1}), 'ada allowed the call of delete with other arguments: {"a":1}'),
    ],
)
def test_an_agent_is_told_what_goes_with_a_grant(given_, told):
    assert told == grant_note("delete", given_)


@pytest.mark.parametrize(
    ("source", "by"),
    [
        ("flag --auto-approve", "auto:cli-flag"),
        ("environment CUELINE_POLICY_AUTO_APPROVE", None),
        ("cueline.toml", "auto:settings cueline.toml"),
    ],
)
def test_an_automatic_grant_names_what_granted_it(source, by):
    asking = agent().model_copy(update={"limit_sources": {"policy.auto_approve": source}})

    assert (by or f"auto:{source}") == auto_approver(asking)
