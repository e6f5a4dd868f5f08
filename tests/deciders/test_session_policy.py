"""What a policy makes of a call, of an answer, and of the lack of one."""

from decimal import Decimal

import pytest

from cueline.deciders.prompt import Prompt, user_message
from cueline.deciders.session import Status, allowing_rule, due, order_digest, wake_at
from cueline.deciders.session.due import AskApproval, CloseApproval, RunTool, TellPeople
from cueline.deciders.session.question import CANCELLED, EXPIRED
from cueline.events.agent import Hook, Policy, Rule
from cueline.events.inbox import DecisionGiven, ResumeAsked
from cueline.events.message import Estimate
from cueline.events.session import (
    ApprovalRequested,
    ApprovalResolved,
    GateAnswer,
    MessageReceived,
    ModelReplied,
    ModelRequested,
    PeopleTold,
    SessionContinued,
    SessionFailed,
    SessionStopped,
    SessionWaiting,
    ToolSkipped,
)
from cueline.testing.given import STREAM, given
from cueline.testing.session_example import (
    AGENT,
    asking,
    decided,
    later,
    question,
    received,
    returned,
    running,
    saying,
    started,
    up_to_reply,
)

ASKED = question("1.0", "1.1.0.1")
EDIT = {"path": "b"}


def policy(**changes):
    return AGENT.model_copy(update={"policy": Policy(**changes)})


def rule(answer, name="mine", **match):
    return Rule(name=name, answer=answer, **match)


def asked(*tools, **changes):
    return given().when(*up_to_reply("delete", *tools, spec=policy(**changes)), ASKED)


def resolved(verdict, by="ada", approval="1.1.0.1", **more):
    return ApprovalResolved(approval=approval, verdict=verdict, by=by, **more)


def digest(arguments, effect="1.0", name="delete"):
    return order_digest(
        session=STREAM, effect=effect, tool=name, tool_digest=name, arguments=arguments,
        workspace=None,
    )  # fmt: skip


def granting(version=2, approval="1.1.0.1", **answer):
    given_ = DecisionGiven(approval=approval, digest="d", verdict="grant", by="ada")
    told = GateAnswer(approval=approval, verdict="granted", by="ada", **answer)
    return received(version, given_, told)


def kinds(past):
    return [type(effect) for effect in due(past.state)]


# 000-050, 000-051, C14: which rule decided is recorded, and told.
def test_a_call_that_a_rule_denies_is_never_asked_about_and_told_to_the_model():
    spec = policy(rules=(rule("deny", "no deletes", tools=("delete",)),))

    past = given().when(*up_to_reply("delete", spec=spec))

    past.then(ModelReplied, ToolSkipped, ModelRequested)
    skipped = past.facts[1]
    assert "no deletes" == skipped.rule
    assert "no deletes" in skipped.reason


# C15: automatic or not; by a rule or by a cap.
@pytest.mark.parametrize("automatic", [{"auto_approve": True}, {"auto_approve_after": 3}])
@pytest.mark.parametrize(
    "denied",
    [{"rules": (rule("deny"),)}, {"approval": ("cost",), "deny_from_usd": Decimal(2)}],
    ids=["rule", "cap"],
)
def test_nothing_that_is_automatic_overrides_a_denial(automatic, denied):
    tools = tuple(t.model_copy(update={"cost_usd": Decimal(2)}) for t in AGENT.tools)
    spec = policy(**automatic, **denied).model_copy(update={"tools": tools})

    given().when(*up_to_reply("delete", spec=spec)).then(ModelReplied, ToolSkipped, ModelRequested)


# 004-022, C10: below the question people are told, and the call goes on.
def test_a_call_that_people_are_told_of_runs_unasked():
    tools = (AGENT.tools[0].model_copy(update={"cost_usd": Decimal("0.2")}),)
    spec = policy(approval=("cost",)).model_copy(update={"tools": tools})

    past = given().when(*up_to_reply("look", spec=spec))

    call = past.state.call("1.0")
    assert ("notify", "cost", Decimal("0.2")) == (
        call.judged.answer,
        allowing_rule(call),
        call.judged.usd,
    )
    assert [RunTool] == kinds(past)


ESTIMATES = AGENT.tools[3].model_copy(update={"estimates": True})


# 004-024: by effect; what the rules decide on is in the reply (I10).
def test_each_call_is_judged_by_what_its_tool_estimated():
    spec = policy(approval=("cost",)).model_copy(update={"tools": (ESTIMATES,)})
    estimates = {"1.0": Estimate(usd=Decimal("0.75")), "1.1": Estimate(usd=Decimal("0.05"))}
    reply = saying("shout", "shout", "shout").model_copy(update={"estimates": estimates})

    past = given().when(started(spec), asking(), reply)

    assert [("ask", Decimal("0.75")), ("allow", Decimal("0.05")), ("ask", None)] == [
        (call.judged.answer, call.judged.usd) for call in past.state.turn.calls
    ]


# I9, C18: a new digest; what was asked for does not run any more.
def test_an_edited_call_runs_as_it_was_edited():
    past = asked().when(granting(edit=EDIT, digest=digest(EDIT)))

    past.then(MessageReceived, ApprovalResolved, SessionContinued(by="work"))
    assert EDIT == past.facts[1].edit
    assert [digest(EDIT)] == [effect.digest for effect in due(past.state)]
    assert "granted by ada" == allowing_rule(past.state.call("1.0"))


def test_an_edit_whose_digest_is_of_something_else_is_asked_again():
    past = asked().when(granting(edit=EDIT, digest=digest({})))

    assert [("1.1.0.2", digest(EDIT))] == [(e.approval, e.digest) for e in due(past.state)]


# C15: an edit is judged like any call.
def test_an_edit_that_a_rule_denies_does_not_run():
    past = asked(rules=(rule("deny", "secrets", paths=("secrets/**",)),))
    secret = {"path": "secrets/key"}

    past.when(granting(edit=secret, digest=digest(secret)))

    assert "secrets" == past.facts[2].rule


def test_an_edit_that_others_would_have_to_allow_is_asked_again():
    past = asked(rules=(rule("ask", "books", paths=("books/**",), votes=2),))
    book = {"path": "books/2026"}

    past.when(granting(edit=book, digest=digest(book)))

    assert [AskApproval] == kinds(past)
    assert 2 == past.state.call("1.0").judged.votes


def test_the_tool_gets_the_arguments_that_were_granted():
    prompt = Prompt()
    for fact in [*up_to_reply("delete"), ASKED, resolved("granted", edit=EDIT)]:
        prompt.add(fact)

    assert EDIT == prompt.calls["1.0"].arguments


# A note to the agent with a grant.
def test_what_goes_with_a_grant_is_told_with_the_next_request():
    past = asked().when(granting(told="ada allowed it (once)"))
    past.when(running("1.0", "delete"), returned("1.0"))

    past.then(type(past.facts[0]), ModelRequested)
    assert (2,) == past.facts[1].messages


def test_the_prompt_has_what_goes_with_a_grant():
    prompt = Prompt()
    for fact in [*up_to_reply("delete"), ASKED, granting(told="ada allowed it (once)")]:
        prompt.add(fact)

    assert [user_message("ada allowed it (once)")] == prompt._mail[2]


# Sticky: a fact that the rules read.
def test_what_was_allowed_for_the_rest_of_the_session_is_not_asked_again():
    spec = policy()
    past = given().when(*up_to_reply("delete", spec=spec), ASKED)
    calm = "sha256:44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    past.when(granting(always=(calm,)), running("1.0", "delete"), returned("1.0"))

    past.when(asking(2), saying("delete", "burn", turn=2))

    first, other = past.state.turn.calls
    assert "always allowed by ada" == allowing_rule(first)
    assert (False, True) == (first.gated, other.gated)


# C13
def test_a_denial_may_pause_the_session():
    past = asked(on_deny="pause").when(decided(2, "1.1.0.1", "denied"))

    past.then(MessageReceived, ApprovalResolved, ToolSkipped, SessionWaiting)
    # 004-033: the words of the source are kept.
    assert "User cancelled at checkpoint" == CANCELLED == past.state.hold
    past.when(received(3, ResumeAsked())).then(MessageReceived, ModelRequested)


# C13
def test_a_denial_may_end_the_session():
    past = asked(on_deny="cancel").when(decided(2, "1.1.0.1", "denied", "no"))

    past.then(MessageReceived, ApprovalResolved, SessionStopped)
    assert ("ada", f"{CANCELLED}: no") == (past.facts[-1].by, past.facts[-1].reason)


def test_a_denial_that_ends_the_session_withdraws_the_other_questions():
    past = asked("burn", on_deny="cancel")
    past.when(question("1.1", "1.1.1.1", name="burn"), decided(2, "1.1.0.1", "denied"))

    past.then(MessageReceived, ApprovalResolved)
    assert ["stop"] == [effect.superseded_by for effect in due(past.state)]
    past.when(resolved("superseded", "stop", "1.1.1.1")).then(ApprovalResolved, SessionStopped)


# C12, 003-020, 004-034, 004-080, D27: expiry leads to a defined state, and the call never runs.
@pytest.mark.parametrize(
    ("on_expiry", "status"),
    [
        ("pause", Status.WAITING),
        ("deny_and_continue", Status.RUNNING),
        ("fail", Status.FAILED),
    ],
)
def test_what_nobody_decided_never_runs(on_expiry, status):
    past = asked(on_expiry=on_expiry).when(resolved("expired", "clock"))

    assert status is past.state.status
    assert RunTool not in kinds(past)
    assert (on_expiry == "pause") == (past.state.hold == EXPIRED)


def test_a_session_that_fails_for_want_of_a_decision_says_so():
    past = asked(on_expiry="fail").when(resolved("expired", "clock"))

    past.then(ApprovalResolved, SessionFailed)
    assert "approval_expired" == past.facts[-1].kind
    assert "1.1.0.1" in past.facts[-1].error


# 003-020
def test_others_are_asked_once_when_nobody_answered():
    past = asked(on_expiry="escalate").when(resolved("expired", "clock"))

    past.then(ApprovalResolved, SessionContinued)
    assert ["1.1.0.2"] == [effect.approval for effect in due(past.state)]
    again = question("1.0", "1.1.0.2").model_copy(update={"escalated": True})
    past.when(again, resolved("expired", "clock", "1.1.0.2"))
    assert EXPIRED == past.state.hold


IN_TIME = ASKED.model_copy(update={"auto_at": later(3)})


# 003-058, C15, C20: the time is in the fact that asks, and survives every restart.
def test_a_session_wakes_when_what_nobody_denied_is_granted():
    past = given().when(*up_to_reply("delete", spec=policy(auto_approve_after=3)), IN_TIME)

    assert later(3) == wake_at(past.state) == past.state.waiting.deadline_at
    assert [CloseApproval("1.0", "1.1.0.1", later(3), None)] == due(past.state)
    past.when(resolved("granted", "auto:auto_approve_after"))
    assert [later(300)] == [effect.valid_until for effect in due(past.state)]


# C15, C17
def test_what_is_for_certain_people_is_never_granted_automatically():
    spec = policy(auto_approve=True, rules=(rule("ask", votes=2),))
    for_people = ASKED.model_copy(update={"people_only": True})

    past = given().when(*up_to_reply("delete", spec=spec), for_people)

    past.then(ApprovalRequested, SessionWaiting)


HOOKS = (
    Hook(on="reminder", command=("mail",), after_seconds=60),
    Hook(on="asked", command=("mail",)),
    Hook(on="notify", command=("mail",)),
)


def told(hook, approval="1.1.0.1", effect="1.0"):
    return PeopleTold(effect=effect, approval=approval, hook=hook, at=later(0))


def owed(past):
    return [effect for effect in due(past.state) if isinstance(effect, TellPeople)]


# 000-067: channels; the times are those of the question, and survive every restart.
def test_people_are_told_of_a_question_at_once_and_again_later():
    past = asked(hooks=HOOKS, approval_seconds=300)

    assert [(1, None), (0, later(60))] == [(each.hook, each.at) for each in owed(past)]
    assert Status.RUNNING is past.state.status
    past.when(told(1)).then(PeopleTold, SessionWaiting)
    assert later(60) == wake_at(past.state) == past.state.waiting.deadline_at
    past.when(told(0))
    assert [] == owed(past)
    assert later(300) == wake_at(past.state)


def test_others_are_told_when_a_question_is_escalated():
    past = asked(hooks=HOOKS, approval_seconds=300, on_expiry="escalate")
    past.when(told(1), told(0), resolved("expired", "clock"), question("1.0", "1.1.0.2"))

    assert ["1.1.0.2", "1.1.0.2"] == [each.approval for each in owed(past)]


def test_people_are_told_of_a_call_that_goes_on():
    spec = policy(hooks=HOOKS, rules=(rule("notify", tools=("look",)),))
    past = given().when(*up_to_reply("look", spec=spec))

    assert [] == owed(past)
    past.when(running("1.0", "look"))
    assert [TellPeople("1.0", "", 2, None)] == owed(past)
    past.when(told(2, approval=""))
    assert [] == owed(past)


def test_nobody_is_told_of_what_was_answered():
    past = asked(hooks=HOOKS).when(decided(2, "1.1.0.1", "granted"))

    assert [] == owed(past)
