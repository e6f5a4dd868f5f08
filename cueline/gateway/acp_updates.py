"""Renders the facts of a session as updates of the Agent Client Protocol."""

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Final

from acp import helpers as acp
from acp.schema import (
    AgentPlanUpdate,
    Cost,
    PlanEntryStatus,
    ToolCallLocation,
    ToolCallStart,
    ToolCallStatus,
    UsageUpdate,
)

from cueline.client.live_text import TextDelta
from cueline.deciders.session import SessionState
from cueline.events.approval import ApprovalOpened
from cueline.events.event_text import wait_text
from cueline.events.inbox import MessageSent
from cueline.events.message import TextBlock, ThinkingBlock, ToolCall, message_text
from cueline.events.session import (
    MessageReceived,
    ModelReplied,
    SessionEvent,
    SessionForked,
    SessionStarted,
    SessionWaiting,
    ToolReturned,
)
from cueline.projections.calls import CallChange, changes_of

Update = acp.SessionUpdate | UsageUpdate
Content = acp.ToolCallContentVariant

_STATUS: Final[dict[str, ToolCallStatus]] = {
    "retry": "pending",
    "started": "in_progress",
    "returned": "completed",
    "reconciled": "completed",
    "failed": "failed",
    "skipped": "failed",
}
_TITLE: Final = 80
"""The most characters of a call's title."""


class Updates:
    """Renders the facts of one session in their order."""

    def __init__(self) -> None:
        self._sent: dict[tuple[str, int, str], str] = {}
        """The pieces of each reply that were rendered, by call, attempt and kind."""
        self._previews: dict[str, list[Content]] = {}
        """The previewed change of each call, by effect."""
        self._plan: AgentPlanUpdate | None = None

    def piece(self, piece: TextDelta) -> list[Update]:
        """Render a piece of a reply that is not recorded yet."""
        if piece.effect.endswith(".c"):
            return []  # a summary for the model, not a reply
        key = (piece.effect, piece.attempt, piece.kind)
        self._sent[key] = self._sent.get(key, "") + piece.text
        return [_chunk(*key, piece.text)]

    def fact(self, fact: SessionEvent, state: SessionState) -> list[Update]:
        """Render *fact*; *state* is the session after it."""
        found: list[Update] = []
        match fact:
            case SessionStarted(goal=str(goal), attachments=attached):
                found = [acp.update_user_message_text(message_text(goal, attached))]
            case SessionForked(goal=str(goal)):
                found = [acp.update_user_message_text(goal)]
            case MessageReceived(message=MessageSent(text=text, attachments=attached)):
                found = [acp.update_user_message_text(message_text(text, attached))]
            case ModelReplied():
                found = self._reply(fact, state)
            case SessionWaiting(kind=kind, cause=cause) if kind not in {"operator", "approval"}:
                found = [acp.update_agent_thought_text(wait_text(kind, cause, paused=False))]
            case _:
                pass
        for change in changes_of(fact):
            found += self._call(change, fact, state)
        return found + self._steps(state)

    def preview(self, opened: ApprovalOpened, state: SessionState) -> Update:
        """Render the previewed change of a call, which stays part of the call's content."""
        content = self._previews[opened.effect] = preview_content(opened.preview, state)
        return acp.update_tool_call(opened.effect, content=content or None)

    def _reply(self, fact: ModelReplied, state: SessionState) -> list[Update]:
        found: list[Update] = []
        texts = [each for each in fact.content if isinstance(each, ThinkingBlock | TextBlock)]
        for kind in ("thinking", "text"):
            key = (fact.effect, fact.attempt, kind)
            whole = "".join(each.text for each in texts if each.kind == kind)
            rest = whole.removeprefix(self._sent.pop(key, ""))
            found += [_chunk(*key, rest)] if rest and fact.cut is None else []
        if state.setup is not None and (size := state.agent.context_window) is not None:
            cost, used = Cost(amount=float(state.used.usd), currency="USD"), fact.usage.total
            usage = UsageUpdate(session_update="usage_update", used=used, size=size, cost=cost)
            found.append(usage)
        return found

    def _call(self, change: CallChange, fact: SessionEvent, state: SessionState) -> list[Update]:
        name, status = change.effect, _STATUS.get(change.status)
        if change.call is not None:
            return [call_start(name, change.call, state)]
        text = change.output or change.message
        content: list[Content] = [acp.tool_content(acp.text_block(text))] if text else []
        if isinstance(fact, ToolReturned) and fact.image:
            content.append(acp.tool_content(acp.image_block(fact.image, fact.media_type)))
        if shown := self._previews.get(name):
            content = shown if change.status == "returned" else [*shown, *content]
        if name.endswith((".m", ".c")) or not (content or status or change.edit):
            return []  # a model call, or nothing that an editor shows
        update = acp.update_tool_call(name, status=status, content=content or None)
        update.raw_input, update.raw_output = change.edit, change.output
        return [update]

    def _steps(self, state: SessionState) -> list[Update]:
        """Render the steps of a plan, if they have changed."""
        before, progress = self._plan, state.progress
        if progress is None:
            return []
        status: dict[str, PlanEntryStatus] = dict.fromkeys(progress.open, "in_progress")
        status |= dict.fromkeys(progress.over, "completed")
        self._plan = acp.update_plan(
            acp.plan_entry(step, status=status.get(step, "pending")) for step in progress.steps
        )
        return [] if self._plan == before else [self._plan]


def call_start(id: str, call: ToolCall, state: SessionState, title: str = "") -> ToolCallStart:  # noqa: A002 - the word of the protocol
    """Return the update that shows *call*, a call of the session with this *state*."""
    words = " ".join([title or call.name, *map(str, call.arguments.values())]).replace("\n", " ")
    title = words if len(words) <= _TITLE else f"{words[: _TITLE - 1]}…"
    start = acp.start_tool_call(id, title, status="pending", raw_input=call.arguments)
    tool = None if state.setup is None else state.setup.tools.get(call.name)
    if tool is not None:
        reads = tool.declared == "read_only"
        edits = tool.writes is not None or tool.target.endswith((":edit_file", ":apply_patch"))
        start.kind = "edit" if edits else "read" if reads else "execute"
        named = (call.arguments.get(each) for each in tool.paths)
        lists = (each if isinstance(each, list) else [each] for each in named)
        root = _root(state)
        paths = [str(root / each) for each in chain(*lists) if isinstance(each, str)]
        start.locations = [ToolCallLocation(path=each) for each in paths]
    return start


def preview_content(preview: str, state: SessionState) -> list[Content]:
    """Return the content for a previewed change: a diff for each hunk, or the text of a warning."""
    warning, *diffs = re.split(r"(?m)^--- a/(?=.*\n\+\+\+ b/)", preview)
    found: list[Content] = [acp.tool_content(acp.text_block(warning))] if warning else []
    for path, _, *lines in map(str.splitlines, diffs):
        hunks: list[list[str]] = []
        for line in lines:
            if line.startswith("@@"):
                hunks.append([])
            else:
                hunks[-1].append(line)
        for hunk in hunks:
            old, new = _side(hunk, " -"), _side(hunk, " +")
            found.append(acp.tool_diff_content(str(_root(state) / path), new, old or None))
    return found


def _side(hunk: Sequence[str], signs: str) -> str:
    return "".join(f"{line[1:]}\n" for line in hunk if line[:1] in signs)


def _root(state: SessionState) -> Path:
    """Return the folder of the agent's files."""
    place = None if state.setup is None else state.agent.workspace
    return Path("/" if place is None else place.path)


def _chunk(effect: str, attempt: int, kind: str, text: str) -> Update:
    """Return a piece of a reply; another attempt of the same call is another message."""
    update = acp.update_agent_thought_text if kind == "thinking" else acp.update_agent_message_text
    return update(text).model_copy(update={"message_id": f"{effect}/{attempt}/{kind}"})
