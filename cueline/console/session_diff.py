"""Words for the differences of two sessions, for a terminal and for pages."""

from decimal import Decimal

from cueline.client.compare import SessionDiff
from cueline.client.file_changes import FileDiff
from cueline.console.text import money


def compared_figures(found: SessionDiff) -> list[tuple[str, str, str]]:
    """Return the name of each figure, with its value of the first and of the other session."""
    a, b = found.a, found.b
    return [
        ("agent", a.agent, b.agent),
        ("model", f"{a.provider} {a.model}", f"{b.provider} {b.model}"),
        ("status", a.status, b.status),
        ("turns", str(a.turns), str(b.turns)),
        ("tool calls", str(a.tool_calls), str(b.tool_calls)),
        ("cost", money(Decimal(a.cost)), money(Decimal(b.cost))),
    ]


def change_text(change: FileDiff) -> str:
    """Return what a session changed in a file: a diff, or a sentence."""
    return change.diff or change.unknown or "it is in the end as before"
