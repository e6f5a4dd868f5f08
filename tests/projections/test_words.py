"""The full-text index, in SQLite and in PostgreSQL."""

import pytest

from cueline.errors import ConfigError
from cueline.events.approval import ApprovalGranted, ApprovalOpened
from cueline.events.inbox import MessageSent
from cueline.events.message import TextBlock, ToolCall
from cueline.events.session import (
    FileChange,
    MessageReceived,
    ModelReplied,
    ToolReturned,
    ToolStarted,
)
from cueline.projections.audit import audit

LONG = "0123456789abcdef" * 100


@pytest.fixture
async def db(log, facts):
    await log.ask("a", facts.ASKED)
    call = ToolCall(id="c", name="run_command", arguments={"command": "rm -rf build/old.d; ls"})
    said = TextBlock(text=f"Ich räume “auf”. See src/main.py.\n{LONG} Ende.")
    replied = ModelReplied(
        effect="1.m", attempt=1, content=(said,), calls=(call,), stop_reason="tool_use"
    )
    started = ToolStarted(
        effect="1.0", attempt=1, tool="run_command", runner="r1", epoch=1, rule="r"
    )
    changed = FileChange("docs/Guide.md", None, "", "aa", None)
    result = ToolReturned(effect="1.0", attempt=1, output="Gone.", changes=(changed,))
    sent = MessageReceived(
        inbox_version=1, recorded_at=log.moment, message=MessageSent(text="Nun weiter")
    )
    await log.tell("a", facts.STARTED, replied, started, result, sent)
    opened = ApprovalOpened(
        session="session-default/a",
        effect="1.0",
        digest="d1" * 32,
        question="may_it_run",
        tool="run_command",
        arguments={},
        summary="rm -rf build",
        epoch=1,
        opened_at=log.moment,
        deadline_at=log.moment,
    )
    granted = ApprovalGranted(by="ada", digest="d1" * 32)
    await log.append("approval-default/a.1.0.1", opened, granted, expected=0)
    return await log.caught_up()


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("rm", ["ModelReplied", "ToolStarted", "ApprovalOpened"]),
        ("RM -rf", ["ModelReplied", "ToolStarted", "ApprovalOpened"]),
        ("rf", []),
        ("build", ["ApprovalOpened"]),
        ("build*", ["ModelReplied", "ToolStarted", "ApprovalOpened"]),
        ("build/old.d", ["ModelReplied", "ToolStarted"]),
        ("src/main.py", ["ModelReplied"]),
        ("räume auf", ["ModelReplied"]),
        ("raume", []),
        ("ende", ["ModelReplied"]),
        ("docs/guide.md", ["ToolReturned"]),
        ("gone", ["ToolReturned"]),
        ("weiter", ["MessageReceived"]),
        ("tidy", ["SessionStarted"]),
        ("d1" * 32, ["ApprovalOpened", "ApprovalGranted"]),
        ("'rm' & (\"ls\")", ["ModelReplied", "ToolStarted"]),
        ("rm AND nothing", []),
        (LONG, ["ModelReplied"]),
        (f"./{LONG}*", []),
        (f"{LONG}*", ["ModelReplied"]),
        ("0" * 3000, []),
    ],
)
def test_events_are_found_by_the_words_of_their_text(db, text, found):
    assert found == [each.type for each in audit(db, text=text)]


def test_filters_compose(db):
    asked = {"text": "rm", "type": "ToolStarted", "tool": "run_command", "actor": "agent"}
    (event,) = audit(db, session="session-default/a", **asked)

    assert [event] == audit(db, text="rm", since=event.recorded_at, until=event.recorded_at)[1:]
    assert [] == audit(db, **asked, after=event.position)
    assert [] == audit(db, **asked, before=event.position)
    assert [] == audit(db, **asked, correlation="c1")


@pytest.mark.parametrize("text", ["", "  ", "* ?"])
def test_a_search_for_no_word_is_refused(db, text):
    with pytest.raises(ConfigError, match="no word"):
        audit(db, text=text)
