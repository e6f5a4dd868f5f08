"""Metrics of a log for Prometheus, made of the answers of a client; nothing is counted here.

Labels have few values: models, kinds, states; never a session or a person.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal
from typing import Final, get_args

from fastapi import APIRouter, Request
from starlette.responses import Response

from cueline.client.client import Client
from cueline.client.rows import STATUSES, Costs, PendingRow
from cueline.client.sandboxes import PoolStatus, State
from cueline.client.status import FleetStatus, LogStatus
from cueline.client.totals import LogTotals, totals_of
from cueline.deciders.session.turn import Question
from cueline.events.fleet import WorkerKind
from cueline.gateway.guard import caller_of

MEDIA_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
"""The text format of Prometheus."""
HELP: Final[Mapping[str, str]] = {
    "cueline_log_events_total": "Events in the log: the position of the last one.",
    "cueline_log_damaged": "1 if an event cannot be read; other figures lack what follows it.",
    "cueline_running_sessions": "Running sessions, with and without a process that drives them.",
    "cueline_sessions": "Sessions by status.",
    "cueline_ended_sessions_total": "Sessions that ended, by how they ended.",
    "cueline_tool_calls_total": "Attempts of tool calls and skipped calls, by how they ended.",
    "cueline_sessions_with_usage_total": "Sessions that have used a model.",
    "cueline_model_calls_total": "Replies of models.",
    "cueline_unpriced_model_calls_total": "Model calls without a known price: not in the cost.",
    "cueline_tokens_total": "Tokens of model calls.",
    "cueline_cost_usd_total": "Cost of model calls in US dollars.",
    "cueline_questions": "Questions that wait for a person.",
    "cueline_next_question_deadline_timestamp_seconds": "When the first question ends by itself.",
    "cueline_oldest_question_seconds": "How long the first question has waited.",
    "cueline_up": "1 if a `cueline up` is running.",
    "cueline_workers": "Hosts and runners; a stale runner is silent.",
    "cueline_workers_wanted": "The least number of hosts and runners that was asked for.",
    "cueline_workers_pending": "Hosts and runners that wait for a node.",
    "cueline_running_tool_calls": "Tool calls that runners run.",
    "cueline_sessions_waiting_for_runner": "Sessions that wait for a runner with what they need.",
    "cueline_sandboxes": "Sandboxes of sessions.",
    "cueline_sandbox_slots": "The number of sandboxes that may be started at a time.",
    "cueline_sandbox_slots_used": "Sessions that have a slot.",
    "cueline_sandbox_queue_sessions": "Sessions that wait for a slot.",
    "cueline_sandbox_queue_oldest_seconds": "How long the first session has waited for a slot.",
    "cueline_breakers": "Circuit breakers; calls are not sent where one is open or held.",
}
"""What each metric is, by its name; the name of a counter ends in `_total`."""
_ALL: Final = 1_000_000
"""More models than a log has."""
_BREAKER_STATES: Final = ("closed", "half-open", "held", "open")
_SESSION_ENDS: Final = {
    "SessionCompleted": "completed",
    "SessionFailed": "failed",
    "SessionStopped": "stopped",
}
_CALL_ENDS: Final = {
    "ToolReturned": "returned",
    "ToolFailed": "failed",
    "ToolSkipped": "skipped",
    "ToolInDoubt": "in_doubt",
}
_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})

Samples = dict[tuple[tuple[str, str], ...], float | Decimal]
"""The values of a metric by their labels, which are pairs of name and value."""
metrics: Final = APIRouter(include_in_schema=False)
"""The route of the metrics."""


@metrics.get("/metrics")
async def scrape(request: Request) -> Response:
    """Answer a scrape of Prometheus: the figures of the whole log."""
    found = await metrics_of(caller_of(request).client)
    text = "".join(_rendered(name, samples) for name, samples in found.items())
    return Response(text, media_type=MEDIA_TYPE)


async def metrics_of(client: Client) -> dict[str, Samples]:
    """Return the metrics of a log, by name.

    Raises:
        ForbiddenError: the person may not read, or reaches one tenant only.
        CorruptEventError: the log is damaged where the fleet or the sandboxes are recorded.
    """
    client.log.check_may("read")
    client.log.check_whole()
    now, position = client.log.clock.now(), await client.log.store.last_position()
    breakers = [each.state for each in await client.breakers()]
    return {
        **_of_log(position, await client.status()),
        **_of_totals(
            await totals_of(client.log, [*_SESSION_ENDS, *_CALL_ENDS], client.notice), now
        ),
        **_of_usage(await client.costs("model", limit=_ALL)),
        **_of_questions((await client.pending()).rows),
        **_of_fleet(await client.fleet()),
        **_of_sandboxes(await client.sandboxes(), now),
        "cueline_breakers": _counted("state", _BREAKER_STATES, breakers),
    }


def _rendered(name: str, samples: Samples) -> str:
    kind = "counter" if name.endswith("_total") else "gauge"
    lines = [f"# HELP {name} {HELP[name]}", f"# TYPE {name} {kind}"]
    for labels, value in samples.items():
        pairs = ",".join(f'{key}="{text.translate(_ESCAPES)}"' for key, text in labels)
        lines.append(f"{name}{{{pairs}}} {value}" if pairs else f"{name} {value}")
    return "\n".join(lines) + "\n"


def _of_log(position: int, status: LogStatus) -> dict[str, Samples]:
    running = {"true": status.driven, "false": status.undriven}
    return {
        "cueline_log_events_total": _one(position),
        "cueline_log_damaged": _one(int(status.damage is not None)),
        "cueline_running_sessions": _by("driven", running),
    }


def _of_totals(totals: LogTotals, now: datetime) -> dict[str, Samples]:
    waited = 0.0 if totals.asked_at is None else (now - totals.asked_at).total_seconds()
    return {
        "cueline_sessions": _by("status", {**dict.fromkeys(STATUSES, 0), **totals.sessions}),
        "cueline_ended_sessions_total": _outcomes(_SESSION_ENDS, totals.events),
        "cueline_tool_calls_total": _outcomes(_CALL_ENDS, totals.events),
        "cueline_oldest_question_seconds": _one(max(0.0, waited)),
    }


def _outcomes(ends: Mapping[str, str], events: Mapping[str, int]) -> Samples:
    return _by("outcome", {outcome: events.get(type_, 0) for type_, outcome in ends.items()})


def _of_usage(costs: Costs) -> dict[str, Samples]:
    tokens: Samples = {}
    for row in costs.rows:
        plain = row.sent_tokens - row.cached_tokens - row.written_tokens
        kinds = {"input": plain, "output": row.output_tokens}
        kinds |= {"cache_read": row.cached_tokens, "cache_write": row.written_tokens}
        for kind, count in kinds.items():
            tokens[("model", row.name), ("kind", kind)] = count
    unpriced = {row.name: row.unpriced for row in costs.rows}
    return {
        "cueline_sessions_with_usage_total": _one(costs.total.sessions),
        "cueline_model_calls_total": _by("model", {row.name: row.calls for row in costs.rows}),
        "cueline_unpriced_model_calls_total": _by("model", unpriced),
        "cueline_tokens_total": tokens,
        "cueline_cost_usd_total": _by("model", {row.name: row.cost for row in costs.rows}),
    }


def _of_questions(pending: Sequence[PendingRow]) -> dict[str, Samples]:
    ends = [(each.auto_at or each.deadline_at).timestamp() for each in pending]
    asked = [each.question for each in pending]
    return {
        "cueline_questions": _counted("question", get_args(Question), asked),
        "cueline_next_question_deadline_timestamp_seconds": _one(min(ends)) if ends else {},
    }


def _of_fleet(fleet: FleetStatus) -> dict[str, Samples]:
    kinds: tuple[str, ...] = get_args(WorkerKind)
    seen: Counter[tuple[str, str]] = Counter((each.kind, each.status) for each in fleet.workers)
    workers: Samples = {
        (("kind", kind), ("status", status)): seen[kind, status]
        for kind in kinds
        for status in ("online", "stale")
    }
    wanted, pending = dict.fromkeys(kinds, 0), dict.fromkeys(kinds, 0)
    for group in fleet.groups:
        wanted[group.kind] += group.least
        pending[group.kind] += group.pending
    calls = sum(each.load for each in fleet.workers if each.kind == "runner")
    return {
        "cueline_up": _one(int(fleet.up)),
        "cueline_workers": workers,
        "cueline_workers_wanted": _by("kind", wanted),
        "cueline_workers_pending": _by("kind", pending),
        "cueline_running_tool_calls": _one(calls),
        "cueline_sessions_waiting_for_runner": _one(sum(each.sessions for each in fleet.waits)),
    }


def _of_sandboxes(pool: PoolStatus, now: datetime) -> dict[str, Samples]:
    states = [each for each in get_args(State) if each not in {"deleted", "gone"}]
    waited = max(((now - each.since).total_seconds() for each in pool.queue), default=0.0)
    return {
        "cueline_sandboxes": _counted("state", states, [each.state for each in pool.sandboxes]),
        "cueline_sandbox_slots": {} if pool.max_started is None else _one(pool.max_started),
        "cueline_sandbox_slots_used": _one(pool.used),
        "cueline_sandbox_queue_sessions": _one(len(pool.queue)),
        "cueline_sandbox_queue_oldest_seconds": _one(waited),
    }


def _one(value: float) -> Samples:
    return {(): value}


def _by(label: str, values: Mapping[str, float | Decimal]) -> Samples:
    return {((label, name),): value for name, value in values.items()}


def _counted(label: str, known: Iterable[str], found: Iterable[str]) -> Samples:
    """Return how often each value of *label* was *found*, also of those that were not."""
    return _by(label, dict.fromkeys(known, 0) | Counter(found))
