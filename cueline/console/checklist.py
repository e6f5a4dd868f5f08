"""Shows the list of a call of the tool `todo`, for a terminal or a page."""

from typing import Final, NamedTuple

from cueline.console.text import Tone, one_line
from cueline.events.message import ToolCall

_NAME: Final = "todo"
_SHOWN: Final[dict[object, tuple[str, Tone]]] = {
    "pending": ("☐", "output"),
    "in_progress": ("▸", "doing"),
    "done": ("☑", "dim"),
}
_WIDTH: Final = 200


class ChecklistRow(NamedTuple):
    """One item of the list."""

    text: str
    tone: Tone
    is_done: bool


def checklist(call: ToolCall | None) -> list[ChecklistRow]:
    """Return the rows of the list in *call*; empty for any other call."""
    items = call.arguments.get("items") if call is not None and call.name == _NAME else None
    rows = []
    for item in items if isinstance(items, list) else ():
        if not isinstance(item, dict) or not isinstance(item.get("text"), str):
            return []
        status = item.get("status", "pending")
        mark, tone = _SHOWN.get(str(status), _SHOWN["pending"])
        rows.append(
            ChecklistRow(f"{mark} {one_line(str(item['text']), _WIDTH)}", tone, status == "done")
        )
    return rows


def progress_of(rows: list[ChecklistRow]) -> str:
    """Return how much of the list is done."""
    return f"{sum(row.is_done for row in rows)} of {len(rows)} done"
