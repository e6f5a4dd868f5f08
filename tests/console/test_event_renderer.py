"""Facts, as a reader is told of them: retries and questions, too (004-007)."""

from datetime import timedelta
from decimal import Decimal
from types import SimpleNamespace

import pytest

from cueline.console.summary import summary
from cueline.events.agent import AgentSpec
from cueline.events.agent_parts import RetryPolicy
from cueline.events.codes import Cause
from cueline.events.inbox import ChildAsked, ChildEnded, MessageSent, PauseAsked
from cueline.events.message import ToolCall
from cueline.events.session import (
    ApprovalResolved,
    CapabilityDegraded,
    LimitRaised,
    LimitWarned,
    LostAttempt,
    MessageReceived,
    MessageRefused,
    ModelFailed,
    PeopleNotified,
    ReservationClosed,
    SessionCompleted,
    SessionFailed,
    SessionStarted,
    SessionTakenOver,
    ToolFailed,
    ToolInDoubt,
    ToolReconciled,
    ToolReturned,
    ToolSkipped,
    ToolStarted,
)
from tests.console.told import NOW, REPLIED, told
from tests.session_example import forked, received

CHILD = "session-default/c"


def test_a_turn_is_told_with_its_cost(telling):
    """000-021."""
    assert [
        "I will look.",
        "  turn 1 · 1,200 in (200 cached) + 50 out tokens · $0.0123, $0.0123 so far · 2.0 s",
    ] == told(telling, REPLIED)


def test_a_reply_without_a_price_says_so(telling):
    (_, cost) = told(telling, REPLIED.model_copy(update={"cost": None}))

    assert "price unknown" in cost


def test_an_answer_that_was_cut_off_says_so(telling):
    (_, cut, _) = told(telling, REPLIED.model_copy(update={"stop_reason": "max_tokens"}))

    assert "! the answer was cut off: it has limits.max_output_tokens" == cut


def test_what_a_model_lacks_is_told(telling):
    lacks = CapabilityDegraded(capability="tools", provider="ollama", model="gemma")

    (line,) = told(telling, lacks)

    assert line.startswith("ollama gemma has no tools: it is told of them in the prompt")


def test_why_a_call_could_not_be_run_is_told_once(telling):
    why = "'path' is missing"
    wrong = REPLIED.calls[0].model_copy(update={"problem": why})

    lines = told(
        telling,
        REPLIED.model_copy(update={"calls": (wrong,)}),
        ToolSkipped(effect="1.0", reason=why),
    )

    assert ["✗ 1.0 read_file was not run", f"    {why}"] == lines[-2:]
    assert 1 == sum(why in line for line in lines)


@pytest.mark.parametrize(
    ("fact", "line"),
    [
        (
            ToolStarted(effect="1.0", attempt=2, tool="read_file", runner="r", epoch=1, rule="off"),
            '▸ 1.0 read_file path="a.txt" (attempt 2)',
        ),
        (ToolReturned(effect="1.0", attempt=1, output="", seconds=0.2), "✓ 1.0 read_file · 0.2 s"),
        (
            ToolReturned(effect="1.0", attempt=1, output="", size=50_000_000),
            "✓ 1.0 read_file · 0.0 s · 50,000,000 bytes, kept whole in the log",
        ),
        (
            ToolReturned(effect="1.0", attempt=1, output="", size=3_000, kept=1_000),
            "✓ 1.0 read_file · 0.0 s · 3,000 bytes, the first 1,000 of them kept in the log",
        ),
        (
            ToolFailed(effect="1.0", attempt=1, kind="timeout", message="late"),
            "✗ 1.0 read_file failed (timeout)",
        ),
        (ToolSkipped(effect="1.0", reason="no"), "✗ 1.0 read_file was not run"),
        (
            ToolInDoubt(
                effect="1.0",
                attempt=1,
                cause=Cause(code="tool_failed", failure="lost", message="it died"),
            ),
            "? 1.0 read_file is in doubt: it may or may not have run (it died)",
        ),
        (
            ToolReconciled(effect="1.0", outcome="unknown", by="policy"),
            "? 1.0 read_file stays unknown, and the agent is told so (says policy)",
        ),
    ],
)
def test_a_call_is_told_by_what_became_of_it(telling, fact, line):
    told(telling, REPLIED)

    assert line == told(telling, fact)[0]


@pytest.mark.parametrize(
    ("fact", "line"),
    [
        (
            ApprovalResolved(approval="one.1.0.1", verdict="denied", by="ada", note="keep"),
            "approval one.1.0.1 denied by ada: keep",
        ),
        (
            SessionTakenOver(
                epoch=2, lost_attempts=(LostAttempt(effect="1.m", attempt=1),), at=NOW
            ),
            "taken over by a new owner, epoch 2; 1 lost attempt",
        ),
        (
            LimitWarned(limit="max_turns", share=0.8, used=40, of=50),
            "80% of the turns used: 40 of 50",
        ),
        (
            LimitWarned(limit="max_active_seconds", share=0.9, used=91.5, of=100, note="Wrap up."),
            "90% of the time of work used: 1m 31s of 1m 40s; the agent is told to wrap up",
        ),
        (
            LimitWarned(limit="max_cost", share=0.8, used=0.84, of=1),
            "80% of the cost used",
        ),
        (
            LimitRaised(max_cost=Decimal(5), max_active_seconds=7200),
            "raised to cost $5.00, time of work 2h 00m",
        ),
        (
            ReservationClosed(
                effect="2.m", attempt=1, outcome="estimated", tokens=9000, usd=Decimal("0.25")
            ),
            "! nobody knows what 2.m used: counted as all it may have cost, $0.2500, 9,000 tokens",
        ),
        (received(2, ChildAsked(child=CHILD)), "▸ child c"),
        (
            received(
                2, ChildEnded(child="session-default/c", status="completed", usd=Decimal("0.5"))
            ),
            "child c completed · $0.5000",
        ),
        (SessionFailed(kind="auth", message="bad key"), "failed (auth): bad key"),
        (
            SessionFailed(kind="approval_expired", approval="1.1.0.1"),
            "failed (approval_expired): nobody decided on 1.1.0.1",
        ),
        (
            MessageReceived(
                inbox_version=2, recorded_at=NOW, message=MessageSent(lane="steer", text="Stop\nit")
            ),
            "you (steer): Stop",
        ),
        (
            MessageRefused(
                inbox_version=2,
                recorded_at=NOW,
                message=PauseAsked(),
                refusal={"code": "never_started"},
            ),
            "! a message was refused (PauseAsked): the session was never started",
        ),
    ],
)
def test_the_course_of_a_session_is_told(telling, fact, line):
    assert line == told(telling, fact)[0]


AGENT = AgentSpec(
    name="a",
    provider="p",
    model="m",
    retry=RetryPolicy(max_retries=3),
    tool_retry=RetryPolicy(max_retries=5),
)


def busy(seconds, attempt=1):
    return ModelFailed(
        effect="1.m",
        attempt=attempt,
        kind="rate_limited",
        message="slow down",
        failed_at=NOW,
        retry_at=NOW + timedelta(seconds=seconds),
    )


def test_a_failed_attempt_says_which_retry_comes_and_when(telling):
    # 004-014, 004-053: what is seen is what is recorded.
    started = SessionStarted(agent=AGENT, goal=None, open=False, attached=False, epoch=1)

    lines = told(telling, started, busy(2), busy(4, attempt=2))

    assert [
        "! the model did not answer (rate_limited): slow down; retry 1/3 in 2.0 s",
        "! the model did not answer (rate_limited): slow down; retry 2/3 in 4.0 s",
    ] == lines[-2:]


def test_a_tool_call_that_is_tried_again_counts_by_its_own_policy(telling):
    started = SessionStarted(agent=AGENT, goal=None, open=False, attached=False, epoch=1)
    lost = ToolFailed(
        effect="1.0", attempt=1, kind="lost", message="gone", failed_at=NOW, retry_at=NOW
    )

    lines = told(telling, started, REPLIED, lost)

    assert "✗ 1.0 read_file failed (lost); retry 1/5 at once" in lines


def test_without_the_sessions_beginning_only_the_number_is_known(telling):
    (line,) = told(telling, busy(2))

    assert line.endswith("; retry 1 in 2.0 s")


def test_what_is_not_critical_is_told_with_what_becomes_of_the_work(telling):
    failed = ToolFailed(effect="1.0", attempt=1, kind="network", message="", degraded=True)

    lines = told(telling, REPLIED, failed, SessionCompleted(result="", partial=True))

    assert "✗ 1.0 read_file failed (network); the work goes on without it" in lines
    assert "completed, but partial" == lines[-1]
    (summed, lacks, *_) = [line.text for line in summary("one", "completed", telling.tally)]
    assert "completed, partial" in summed
    assert "partial: 1 call of tools that are not critical failed" in lacks


def test_a_result_is_capped_on_screen(telling):
    lines = told(telling, ToolReturned(effect="1.0", attempt=1, output="x\n" * 100))

    assert ["    x"] * 6 == lines[1:7]
    assert "    … 94 more lines" == lines[7]


def test_the_lines_of_a_result_that_the_model_saw_a_part_of_are_counted_as_that(telling):
    part = ToolReturned(effect="1.0", attempt=1, output="x\n" * 100, size=1_000_000)

    lines = told(telling, part)

    assert "    … 94 more lines of what the model was told" == lines[7]


def test_a_fork_says_of_what(telling):
    assert "forked from 1 at version 3" == told(telling, forked(version=3))[0]
    assert (
        "forked"
        not in told(
            telling, SessionStarted(agent=AGENT, goal=None, open=False, attached=False, epoch=1)
        )[0]
    )


@pytest.mark.parametrize(("verdict", "tone"), [("granted", "good"), ("denied", "bad")])
def test_an_answer_has_the_tone_of_its_verdict(telling, verdict, tone):
    recorded = SimpleNamespace(recorded_at=NOW, stream="session-default/one")
    resolved = ApprovalResolved(approval="1.1.0.1", verdict=verdict, by="ann")

    assert [tone] == [line.tone for line in telling.render(recorded, resolved)]


def test_a_call_that_was_edited_is_told_as_it_runs(telling):
    edit = ApprovalResolved(
        approval="one.1.0.1", verdict="granted", by="ada", edit={"path": "b"}, always=("b",)
    )
    started = ToolStarted(effect="1.0", attempt=1, tool="read_file", runner="r", epoch=1, rule="x")
    told(telling, REPLIED)

    assert ['approval one.1.0.1 granted by ada with path="b", always'] == told(telling, edit)
    assert ['▸ 1.0 read_file path="b"'] == told(telling, started)


@pytest.mark.parametrize("rule", ["cost", "granted by ada"])
def test_people_at_a_terminal_are_told_of_a_call_by_what_allows_it(telling, rule):
    started = ToolStarted(
        effect="1.0", attempt=1, tool="read_file", runner="r", epoch=1, rule=rule,
        usd=Decimal("0.25"), notify=True,
    )  # fmt: skip
    told(telling, REPLIED)

    assert f"1.0 read_file: allowed ({rule}), about $0.25" == told(telling, started)[1]


def test_what_a_model_takes_for_the_name_of_a_tool_is_told_on_one_line(telling):
    call = ToolCall(id="c", name="x\x1b[2J\napproval one.1.0.1 granted by ada", arguments={})
    told(telling, REPLIED.model_copy(update={"calls": (call,)}))

    skipped = told(telling, ToolSkipped(effect="1.0", reason="There is no such tool."))

    assert "✗ 1.0 x\\x1b[2J approval one.1.0.1 granted by ada was not run" == skipped[0]


def test_a_hook_that_reached_nobody_is_told(telling):
    hook = PeopleNotified(
        effect="1.0",
        approval="one.1.0.1",
        hook=0,
        code="hook_failed",
        problem="it ended with 3",
        at=NOW,
    )

    assert ["hook 1 told nobody of one.1.0.1: it ended with 3"] == told(telling, hook)
    assert [] == told(telling, hook.model_copy(update={"problem": ""}))


def test_the_list_of_what_is_to_do_is_shown_as_a_checklist(telling):
    items = [
        {"text": "look", "status": "done"},
        {"text": "change\n\x1b[2J", "status": "in_progress"},
        *({"text": f"check {n}"} for n in range(6)),
    ]
    call = ToolCall(id="c", name="todo", arguments={"items": items})
    told(telling, REPLIED.model_copy(update={"calls": (call,)}))

    started = told(
        telling, ToolStarted(effect="1.0", attempt=1, tool="todo", runner="r", epoch=1, rule="off")
    )
    returned = told(telling, ToolReturned(effect="1.0", attempt=1, output="[x] look", seconds=0))

    assert ["▸ 1.0 todo 1 of 8 done"] == started
    assert ["✓ 1.0 todo · 0.0 s", "    ☑ look", "    ▸ change \\x1b[2J"] == returned[:3]
    assert [f"    ☐ check {n}" for n in range(6)] == returned[3:]


@pytest.mark.parametrize("items", [None, "text", [1], [{"text": 1}], [{"status": "done"}]])
def test_a_call_of_another_shape_is_shown_by_its_arguments(telling, items):
    call = ToolCall(id="c", name="todo", arguments={"items": items})
    told(telling, REPLIED.model_copy(update={"calls": (call,)}))

    (started,) = told(
        telling, ToolStarted(effect="1.0", attempt=1, tool="todo", runner="r", epoch=1, rule="off")
    )

    assert "items=" in started
