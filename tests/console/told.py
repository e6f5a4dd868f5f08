"""What a reader is told of facts, a turn to tell of, and a question."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal
from types import SimpleNamespace

from cueline.console.question import Question
from cueline.events.event_text import RESOLUTIONS
from cueline.events.message import Cost, TextBlock, ToolCall, Usage
from cueline.events.session import ModelReplied

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)
REPLIED = ModelReplied(
    effect="1.m",
    attempt=1,
    content=(TextBlock(text="I will look."),),
    calls=(ToolCall(id="c", name="read_file", arguments={"path": "a.txt"}),),
    stop_reason="tool_use",
    usage=Usage(input=1_000, output=50, cache_read=200),
    cost=Cost(usd=Decimal("0.0123"), prices="2026"),
    seconds=2.0,
)


def told(telling, *facts):
    recorded = SimpleNamespace(recorded_at=NOW, stream="session-default/one")
    return [line.text for fact in facts for line in telling.render(recorded, fact)]


def question(approval="one.1.0.1", *, happened=False, **arguments):
    return Question(
        approval=approval,
        session="one",
        tool="delete_file",
        arguments=arguments or {"path": "packages/core/src/important.ts"},
        deadline_at=NOW + timedelta(seconds=300),
        resolutions=RESOLUTIONS if happened else {},
    )
