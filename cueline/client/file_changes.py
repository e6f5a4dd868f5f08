"""What the calls of a session changed in files, and the session that puts it back."""

from base64 import b64encode
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from cueline.actors.inbox import new_id
from cueline.actors.presence import machine_name
from cueline.agents.secret import check_secrets, waiver
from cueline.agents.workflow import WORKFLOW
from cueline.client.argument_check import make_value
from cueline.client.context import Connection
from cueline.client.history import History, read_history
from cueline.client.start import StartRequest
from cueline.errors import ConfigError, CuelineError, MissingBlobError, RejectedError
from cueline.events.agent import AgentSpec, Workspace
from cueline.events.agent_parts import Plan, Step
from cueline.events.inbox import StartAsked
from cueline.events.message import Arguments
from cueline.events.sanitize import Redactor, sanitize
from cueline.events.session import FileChange, ToolReturned
from cueline.runtime.open_log import OpenLog
from cueline.tools.changes import FileState, content_at, digest_of, restore_files
from cueline.tools.preview import difference

_ALL_LINES = 1_000_000
_NOT_RECORDED = "is not recorded: it is over 10 MB, or holds a secret"
UNDO_OF = "undo_of"
"""The label of a session that puts files back: the id of the session that changed them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FileDiff:
    """A file that a session changed, from its first recorded content to its last."""

    path: str
    calls: tuple[str, ...]
    """The calls that changed it, in order."""
    before_digest: str
    """The sha256 of its content before the first call, in hex; empty: there was no file."""
    after_digest: str
    """The sha256 of its content after the last call; empty: it was deleted."""
    diff: str = ""
    """The change as a unified diff; empty if a text is not known, or is in the end the same."""
    unknown: str = ""
    """Which text is not known, and why."""


class _Changed(NamedTuple):
    """The changes of one file, in order, each with its call."""

    path: str
    changes: list[tuple[str, FileChange]]

    @property
    def first(self) -> FileChange:
        return self.changes[0][1]

    @property
    def last(self) -> FileChange:
        return self.changes[-1][1]

    @property
    def calls(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(effect for effect, _ in self.changes))

    def gap(self) -> str:
        """Return after which call another program changed the file; empty if none did."""
        pairs = zip(self.changes, self.changes[1:], strict=False)
        gaps = (call for (call, one), (_, two) in pairs if one.after_digest != two.before_digest)
        return next(gaps, "")


def _changed(history: History, call: str | None = None) -> list[_Changed]:
    """Return the files that the session, or one *call* of it, has changed.

    Raises:
        CorruptEventError: the session cannot be read to its end, or an event of it was emptied.
    """
    if (error := history.damage or history.followed.emptied) is not None:
        raise error
    found: dict[str, _Changed] = {}
    for _, fact in history.events:
        if isinstance(fact, ToolReturned) and call in (None, fact.effect):
            for each in fact.changes:
                found.setdefault(each.path, _Changed(each.path, [])).changes.append(
                    (fact.effect, each)
                )
    return list(found.values())


async def file_diffs(log: OpenLog, history: History) -> list[FileDiff]:
    """Return what the session of a whole *history* changed, a diff for each file, by path.

    Raises:
        CorruptEventError: the session cannot be read to its end, or an event of it was emptied.
    """
    place = history.state.agent.workspace if history.state.setup is not None else None
    return [
        await _diff_of(log, place, each)
        for each in sorted(_changed(history), key=lambda each: each.path)
    ]


async def _diff_of(log: OpenLog, place: Workspace | None, changed: _Changed) -> FileDiff:
    path, digests = changed.path, (changed.first.before_digest, changed.last.after_digest)
    sides = [await _content(log, place, path, digest) for digest in digests]
    diff = unknown = ""
    if sides[0] is None:
        unknown = f"its text before {_NOT_RECORDED}"
    elif sides[1] is None:
        unknown = "its text after the last call is not known: the file has changed since"
        if place is None or place.machine != machine_name():
            unknown = "its text after the last call is not in the log, and the file is not here"
    elif digests[0] != digests[1]:
        before, after = (
            side if digest else None for side, digest in zip(sides, digests, strict=True)
        )
        diff = difference(path, before, after, _ALL_LINES)
    return FileDiff(
        path=path,
        calls=changed.calls,
        before_digest=digests[0],
        after_digest=digests[1],
        diff=diff,
        unknown=unknown,
    )


async def _content(log: OpenLog, place: Workspace | None, path: str, digest: str) -> bytes | None:
    """Return the content with *digest*, of the log or of the file; None if neither has it."""
    if not digest:
        return b""
    try:
        return await log.store.get_blob(digest)
    except MissingBlobError:
        pass
    if place is None or place.machine != machine_name():
        return None
    try:
        found = content_at(Path(place.path), path)
    except CuelineError:
        return None
    return found if digest_of(found) == digest else None


class Undo(NamedTuple):
    """The checked start of a session that puts files back, and what it will change."""

    start: StartRequest
    diff: str


async def undo_request(
    client: Connection,
    stream: str,
    *,
    call: str | None = None,
    without_secrets: Collection[str] = (),
    attached: bool = False,
) -> Undo:
    """Check the inverse of the changes of a session, or of one *call*, such as `3.0`.

    It is a session of its own, because a session that has ended takes no calls (I6): a plan with
    one call that asks, under the rules of the session. *attached*: a person is at a terminal.

    Raises:
        RejectedError: a file has changed since or its content before is not recorded, nothing was
            changed, or all is undone.
        ConfigError: the files are on another machine.
        CorruptEventError: the session cannot be read to its end, or an event of it was emptied.
    """
    history = await read_history(client.log, stream)
    changed = _changed(history, call)
    if not changed:
        others = sorted({each for one in _changed(history) for each in one.calls})
        why = f"the call {call} changed no file" if call else "its calls changed no file"
        raise RejectedError(
            history.id, f"{why}; those that did: {', '.join(others)}" if others else why
        )
    agent = history.state.agent
    place = agent.workspace
    if place is None or place.machine != machine_name():
        where = "nowhere" if place is None else f"{place.path} on {place.machine}"
        raise ConfigError("the workspace", f"the files are {where}; undo it there")
    files = [
        state
        for each in changed
        if (state := await _inverse(client.log, history.id, Path(place.path), each)) is not None
    ]
    if not files:
        raise RejectedError(history.id, "there is nothing to undo: all its files are as before it")
    root = Path(place.path)
    diffs = (difference(each.path, content_at(root, each.path), each.data()) for each in files)
    check_secrets(agent, without_secrets)
    user = client.log.user
    asked = make_value(
        StartAsked,
        agent=_undoing(agent, user),
        parameters={
            "paths": [each.path for each in files],
            "files": [each.model_dump(mode="json") for each in files],
        },
        labels={UNDO_OF: history.id},
        attached=attached,
        asked_by=user,
        asked_at=client.log.clock.now(),
    )
    start = StartRequest(new_id(), asked, waiver(agent, without_secrets, user))
    return Undo(start, "\n".join(diffs))


async def _inverse(log: OpenLog, session: str, root: Path, changed: _Changed) -> FileState | None:
    """Return what puts a file back; None if the file is as before.

    Raises:
        RejectedError: that cannot be done without losing something.
    """
    path, first, last = changed.path, changed.first, changed.last
    try:
        present = digest_of(content_at(root, path))
    except CuelineError as error:
        raise RejectedError(session, f"{path} cannot be compared: {error}") from None
    if present == first.before_digest:
        return None
    if present != last.after_digest:
        raise RejectedError(session, f"{path} has changed since, so nothing is undone")
    if gap := changed.gap():
        why = f"another program changed {path} after the call {gap}; undo single calls"
        raise RejectedError(session, why)
    before = await _content(log, None, path, first.before_digest)
    if before is None:
        raise RejectedError(session, f"what {path} held before {_NOT_RECORDED}")
    if not first.before_digest:
        return FileState(path=path, content=None, expected=present, digest="")
    text = before.decode(errors="replace")
    is_text = sanitize(text, Redactor())[0].encode() == before
    return FileState(
        path=path,
        content=text if is_text else b64encode(before).decode(),
        base64=not is_text,
        expected=present,
        digest=first.before_digest,
        mode=first.mode,
    )


def _undoing(agent: AgentSpec, user: str) -> AgentSpec:
    """Return the agent that puts files back for *user*, under the policy of *agent*."""
    tool = restore_files.spec()
    arguments: Arguments = {"paths": "{{ input.paths }}", "files": "{{ input.files }}"}
    kept = ("workspace", "secrets", "environment", "demands")
    asks = {"approval": ("sensitive",), "auto_approve": False, "auto_approve_after": None}
    return AgentSpec(
        name="undo",
        provider=WORKFLOW,
        model="",
        tools=(tool,),
        plan=Plan(steps=(Step(name=tool.name, arguments=arguments),)),
        parameters_schema={"type": "object"},
        policy=agent.policy.model_copy(update=asks),
        key_owner=user,
        **{name: getattr(agent, name) for name in kept},
    )
