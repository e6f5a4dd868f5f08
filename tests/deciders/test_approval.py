"""The rules of one approval."""

import pytest

from cueline.deciders.approval import APPROVAL, Expire, Judgement, Open, Supersede, Vote, judge
from cueline.deciders.approval import refusal as refusal_of
from cueline.events.agent import Policy
from cueline.events.approval import (
    ApprovalDenied,
    ApprovalExpired,
    ApprovalGranted,
    ApprovalOpened,
    ApprovalSuperseded,
    VoteGiven,
)
from cueline.testing.given import given_past
from cueline.testing.session_example import NOW, later, tool

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


def vote(verdict="grant", digest="of this", at=NOW, message="inbox@2"):
    return Vote(verdict, digest, "ada", "", message, at)


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
    given(OPENED).when(Expire(later(300))).then(ApprovalExpired(at=later(300)))


def test_a_question_whose_need_has_ended_is_superseded():
    given(OPENED).when(Supersede("stop")).then(ApprovalSuperseded(reason="stop"))


# 000-023, 000-024, 000-051, 000-052
@pytest.mark.parametrize(
    ("approval", "sensitive", "judgement"),
    [
        ("sensitive", True, Judgement(asks=True, rule="sensitive")),
        ("sensitive", False, Judgement(asks=False, rule="not sensitive")),
        ("off", True, Judgement(asks=False, rule="off")),
    ],
)
def test_a_declaration_decides_who_is_asked(approval, sensitive, judgement):
    judged = judge(Policy(approval=approval), tool("delete_everything", sensitive=sensitive))

    assert judgement == judged
