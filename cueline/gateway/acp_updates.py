"""Renders the facts of a session as updates of the Agent Client Protocol."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from acp import helpers as acp
from acp.schema import (
    AgentMessageChunk,
    AgentPlanUpdate,
    AgentThoughtChunk,
    ContentToolCallContent,
    Cost,
    FileEditToolCallContent,
    TerminalToolCallContent,
    ToolCallLocation,
    ToolCallProgress,
    ToolCallStart,
    ToolCallStatus,
    ToolKind,
    UsageUpdate,
    UserMessageChunk,
)

from cueline.client.live_text import TextDelta
from cueline.deciders.session import SessionState
from cueline.events.approval import ApprovalOpened
from cueline.events.event_text import wait_text
from cueline.events.inbox import MessageSent
from cueline.events.message import TextBlock, ThinkingBlock, ToolCall, Usage, message_text
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

Update = (
    UserMessageChunk
    | AgentMessageChunk
    | AgentThoughtChunk
    | ToolCallStart
    | ToolCallProgress
    | AgentPlanUpdate
    | UsageUpdate
)
Content = ContentToolCallContent | FileEditToolCallContent | TerminalToolCallContent

_STATUS: Final[dict[str, ToolCallStatus]] = {
    "requested": "pending",
    "retry": "pending",
    "started": "in_progress",
    "returned": "completed",
    "reconciled": "completed",
    "failed": "failed",
    "skipped": "failed",
}
_KINDS: Final[dict[str, ToolKind]] = {
    "list_files": "search",
    "search_files": "search",
    "read_file": "read",
    "delete_file": "delete",
    "run_command": "execute",
}
"""The kinds of built-in tools that their declarations do not tell."""
_TITLE: Final = 80
"""The most characters of a call's title."""


class Updates:
    """Renders the facts of one session in their order."""

    def __init__(self) -> None:
        self.used = Usage()
        """The usage of the model calls since it was last set to `Usage()`."""
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
        return [_chunk(piece.kind, piece.text, piece.effect, piece.attempt)]

    def fact(self, fact: SessionEvent, state: SessionState) -> list[Update]:
        """Render *fact*; *state* is the session after it."""
        found: list[Update] = []
        match fact:
            case SessionStarted(goal=str(goal), attachments=attached):
                found = [_from_user(message_text(goal, attached), 1)]
            case SessionForked(goal=str(goal)):
                found = [_from_user(goal, 1)]
            case MessageReceived(message=MessageSent(text=text, attachments=attached)):
                found = [_from_user(message_text(text, attached), fact.inbox_version)]
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
        self.used += fact.usage
        for kind, block in (("thinking", ThinkingBlock), ("text", TextBlock)):
            whole = "".join(each.text for each in fact.content if isinstance(each, block))
            sent = self._sent.pop((fact.effect, fact.attempt, kind), "")
            rest = whole.removeprefix(sent)
            if rest and fact.cut is None:
                found.append(_chunk(kind, rest, fact.effect, fact.attempt))
        if state.setup is not None and (window := state.agent.context_window) is not None:
            cost = Cost(amount=float(state.used.usd), currency="USD")
            used = fact.usage.total
            told = UsageUpdate(session_update="usage_update", used=used, size=window, cost=cost)
            found.append(told)
        return found

    def _call(self, change: CallChange, fact: SessionEvent, state: SessionState) -> list[Update]:
        if change.call is not None:
            return [call_start(change.effect, change.call, state)]
        if change.effect.endswith((".m", ".c")):  # a model call
            return []
        content: list[Content] = []
        if text := change.output or change.message:
            content = [acp.tool_content(acp.text_block(text))]
        if isinstance(fact, ToolReturned) and fact.image:
            content.append(acp.tool_content(acp.image_block(fact.image, fact.media_type)))
        if shown := self._previews.get(change.effect):
            content = shown if change.status == "returned" else [*shown, *content]
        status = _STATUS.get(change.status)
        if not content and status is None and change.edit is None:
            return []
        return [
            acp.update_tool_call(
                change.effect,
                status=status,
                content=content or None,
                raw_input=change.edit,
                raw_output=change.output,
            )
        ]

    def _steps(self, state: SessionState) -> list[Update]:
        if (progress := state.progress) is None:
            return []
        plan = acp.update_plan(
            acp.plan_entry(
                name,
                status="completed"
                if name in progress.over
                else "in_progress"
                if name in progress.open
                else "pending",
            )
            for name in progress.steps
        )
        if plan == self._plan:
            return []
        self._plan = plan
        return [plan]


def call_start(
    id: str,  # noqa: A002 - the word of the protocol
    call: ToolCall,
    state: SessionState,
    *,
    title: str = "",
) -> ToolCallStart:
    """Return the update that shows *call*, a call of the session with this *state*."""
    kind, places = _KINDS.get(call.name, "other"), []
    tool = None if state.setup is None else state.setup.tools.get(call.name)
    if tool is not None and state.agent.workspace is not None:
        kind = "edit" if tool.writes is not None else kind
        named = (call.arguments.get(name) for name in tool.paths)
        root = Path(state.agent.workspace.path)
        places = [
            ToolCallLocation(path=str(root / each)) for each in named if isinstance(each, str)
        ]
    words = " ".join([title or call.name, *map(str, call.arguments.values())]).replace("\n", " ")
    return acp.start_tool_call(
        id,
        words if len(words) <= _TITLE else f"{words[: _TITLE - 1]}…",
        kind=kind,
        status="pending",
        locations=places,
        raw_input=call.arguments,
    )


def preview_content(preview: str, state: SessionState) -> list[Content]:
    """Return the content for a previewed change: a diff for each hunk, or the text of a warning."""
    place = None if state.setup is None else state.agent.workspace
    root = Path("/" if place is None else place.path)
    lines = preview.splitlines()
    starts = [n for n, line in enumerate(lines) if line.startswith("--- a/")][:1]
    warning = lines[: starts[0]] if starts else lines
    found: list[Content] = []
    if warning:
        found.append(acp.tool_content(acp.text_block("\n".join(warning))))
    for start in starts:
        path = str(root / lines[start].removeprefix("--- a/"))
        for hunk in _hunks(lines[start + 2 :]):
            old, new = _side(hunk, " -"), _side(hunk, " +")
            found.append(acp.tool_diff_content(path, new, old or None))
    return found


def _hunks(lines: Iterable[str]) -> list[list[str]]:
    hunks: list[list[str]] = []
    for line in lines:
        if line.startswith("@@"):
            hunks.append([])
        elif hunks:
            hunks[-1].append(line)
    return hunks


def _side(hunk: Sequence[str], signs: str) -> str:
    return "".join(f"{line[1:]}\n" for line in hunk if line[:1] in signs)


def _from_user(text: str, version: int) -> UserMessageChunk:
    chunk = acp.update_user_message_text(text)
    return chunk.model_copy(update={"message_id": str(version)})


def _chunk(kind: str, text: str, effect: str, attempt: int) -> Update:
    """Return a piece of a reply; another attempt of the same call is another message."""
    content, name = acp.text_block(text), f"{effect}/{attempt}/{kind}"
    update = acp.update_agent_thought if kind == "thinking" else acp.update_agent_message
    return update(content).model_copy(update={"message_id": name})
