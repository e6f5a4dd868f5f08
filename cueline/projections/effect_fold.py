"""Applies facts to the rows of effects."""

import json
from collections.abc import Mapping
from functools import lru_cache

from cueline.events.store import RecordedEvent
from cueline.events.stream import is_model_call
from cueline.projections.calls import OVER, CallChange, changes_of
from cueline.projections.effect import Effect
from cueline.projections.read_model import Row, Rows, new_row
from cueline.projections.transcript import EXCERPT
from cueline.projections.usage import add

_JSON = json.JSONEncoder(ensure_ascii=False)


class EffectFold:
    """Applies the facts of effects in a batch of events."""

    def __init__(self, effects: Rows) -> None:
        self._effects = effects

    def fold(self, session: Row, recorded: RecordedEvent, fact: object) -> str:
        """Apply one event of *session*; return the one tool that it is about."""
        tool = ""
        for change in changes_of(fact):
            row = self._row(session, recorded, change)
            if row is None:
                continue
            if change.used is not None:
                add(row, change.used.columns())
            if change.edit is not None:
                row["arguments"] = _text(change.edit)
            if change.rule is not None:
                row["rule"] = change.rule
            if change.files:
                row["files_json"] = _JSON.encode(change.files)
            if change.status:
                _apply(row, session, recorded, change)
            if change.call is None and change.status != "lost":
                tool = str(row["tool"])
        return tool

    def _row(self, session: Row, recorded: RecordedEvent, change: CallChange) -> Row | None:
        """Return the effect's row; a fork may get results of effects that its past requested."""
        stream, model = session["stream"], is_model_call(change.effect)
        # A first attempt is new, and so is a call that a reply requests: looking for the row would
        # cost as much as everything else.
        if change.call is None and not (change.status == "requested" and change.attempt == 1):
            found = self._effects.find(stream, change.effect)
            if found is not None or not (change.status or change.used):
                return found
        return self._effects.add(
            new_row(
                Effect,
                stream=stream,
                effect=change.effect,
                kind="model" if model else "tool",
                key=f"{stream}/{change.effect}",
                requested_version=recorded.version,
            )
        )


@lru_cache(maxsize=16)
def _declared(tools: str) -> Mapping[str, str]:
    """Return what each tool declares; the calls of one reply ask for the same *tools*."""
    declared: dict[str, str] = json.loads(tools)
    return declared


def _text(arguments: Mapping[str, object], malformed: str | None = None) -> str:
    return (_JSON.encode(arguments) if malformed is None else malformed)[:EXCERPT]


def _apply(row: Row, session: Row, recorded: RecordedEvent, change: CallChange) -> None:
    status = change.status
    row["status"] = "retry" if status == "lost" else status
    row["lost"] += "lost" in (status, change.kind)
    if change.call is not None:
        declared = _declared(session["tools_json"])
        row["tool"], row["declared"] = change.tool, declared.get(change.tool, "")
        row["arguments"] = _text(change.call.arguments, change.call.malformed)
    if change.seconds is not None:
        row["seconds"] = change.seconds
    if status == "started":
        row["attempts"] = max(row["attempts"], change.attempt)
        if row["started_position"] is None:
            row["started_position"] = recorded.position
        if change.tool:
            row["tool"], row["runner"] = change.tool, change.runner
    elif status == "requested":
        row["ended_position"] = row["ended_version"] = None
    elif status in OVER:
        row["ended_position"], row["ended_version"] = recorded.position, recorded.version
    if status in ("in_doubt", "requested", "reconciled"):
        session["in_doubt"] += (status == "in_doubt") - row["in_doubt"]
        row["in_doubt"] = status == "in_doubt"
