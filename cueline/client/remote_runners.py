"""Runners outside of the cluster: they register, ask for requests, and send answers, over HTTP.

The dispatcher of `cueline up` learns of them from the fleet's stream, and tells its hosts.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any, Final

from pydantic import JsonValue

from cueline.actors.presence import presence_of
from cueline.actors.runner_registry import RUNNER, ClaimedRun, removal_messages
from cueline.actors.runner_relay import POLL_SECONDS, RelayLink, RelayPort
from cueline.actors.runner_wire import json_of_request, reply_of
from cueline.client.client import Client
from cueline.client.context import acting_for
from cueline.client.open_read_models import read_models
from cueline.deciders.person import Person
from cueline.errors import ConfigError, RejectedError, RunnerGoneError
from cueline.events.agent import AgentSpec
from cueline.events.fleet import FleetEvent, RunnerRegistered, RunnerRemoved, WorkerGroup
from cueline.events.journal import FactWrite
from cueline.events.store import Presence
from cueline.projections.session import claimed_runs
from cueline.runtime.open_log import OpenLog

_INCARNATION: Final = re.compile("runner-[0-9a-f]{12}")
NAME_LABEL: Final = "name"
"""The label by which a call demands a runner by its name."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """The process of a runner, so that others on its machine see when it has ended."""

    machine: str
    boot_id: str
    pid: int
    process_started: int
    pid_namespace: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """What a runner needs to know after its registration."""

    runner: str
    """Its incarnation, a part of the path of all its requests."""
    heartbeat_seconds: float
    """The time between two heartbeats."""
    poll_seconds: float
    """How long a question for requests waits."""
    removal_seconds: float
    """The silence after which the runner counts as gone: it has to end its calls before."""
    workers: int
    """The calls in worker processes that run at a time, at most."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Requests:
    """The requests that a runner has not confirmed yet."""

    relay: str
    """Which relay has numbered them; another one knows nothing of earlier requests."""
    requests: Sequence[Mapping[str, JsonValue]]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunnerReceipt:
    """The answer to a runner's report."""

    runner: str


def process_here() -> Process:
    """Return this process."""
    present = asdict(presence_of("runner"))
    return Process(**{name: present[name] for name in Process.__slots__})


def with_relay(log: OpenLog, descriptor: int) -> OpenLog:
    """Return *log* with the relay at the other end of a socket that this process inherited."""
    return replace(log, relay=RelayLink(descriptor))


async def register_runner(
    client: Client,
    *,
    name: str,
    runner: str,
    process: Process,
    labels: Mapping[str, str] | None = None,
    resources: Mapping[str, float] | None = None,
    blueprints: Sequence[AgentSpec] = (),
) -> Registered:
    """Register a runner that is outside of the cluster.

    It gets the calls that demand its name or one of its labels, and those of the runs of its
    blueprints.

    Args:
        client: of somebody with the scope `runner`; with *blueprints*, `admin`.
        name: the runner's name. With the same name, the next process takes over the blueprints
        of a silent one.
        runner: the incarnation that the process has chosen, `runner-` and 12 hex digits; a
        registration that comes twice counts once.
        process: where it runs.
        labels: its labels, which calls can demand.
        resources: its resources, which calls can demand.
        blueprints: the agents that it offers.

    Raises:
        BlueprintConflictError: another runner offers such an agent; nothing was registered.
        ConfigError: the name is reserved, or this server keeps no runners.
        ForbiddenError: the scopes do not suffice.
    """
    # A recorded agent can name a command, and a server that gets a key.
    client.log.check_may("admin" if blueprints else "runner")
    client.log.check_whole()
    _relay_of(client)
    if name in ("", RUNNER):
        raise ConfigError("name", f"{name!r} names no runner; choose another name")
    if not _INCARNATION.fullmatch(runner):
        raise ConfigError("runner", f"{runner!r} is not `runner-` and 12 hex digits")
    state = await client.fleet_log.read()
    there = state.runners.get(runner)
    if there is not None and there.fact.by != client.log.user:
        raise RejectedError(runner, "somebody else has registered it; restart the runner")
    labels = {**(labels or {}), NAME_LABEL: name}
    fact = RunnerRegistered(
        incarnation=runner,
        runner=name,
        blueprints=tuple(blueprints),
        group=WorkerGroup(kind="runner", labels=labels, resources=dict(resources or {})),
        machine=process.machine,
        pid=process.pid,
        by=client.log.user,
        epoch=state.epoch,
        at=client.log.clock.now(),
    )
    await client.log.board.beat(_presence(runner, process))
    try:
        await client.fleet_log.record([fact], client.log.user)
    except BaseException:
        if there is None:  # else its earlier registration stays, and with it its heartbeats
            await client.log.board.leave(runner)
        raise
    return Registered(
        runner=runner,
        # The runner ends its calls after half of the time without an answer.
        heartbeat_seconds=min(client.log.heartbeat_seconds, client.log.removal_seconds / 6),
        poll_seconds=POLL_SECONDS,
        removal_seconds=client.log.removal_seconds,
        workers=client.log.slots.workers,
    )


async def runner_heartbeat(client: Client, runner: str, *, process: Process) -> RunnerReceipt:
    """Tell that a runner is alive.

    Args:
        client: of whoever registered the runner.
        runner: the incarnation that is alive.
        process: where it runs.

    Raises:
        RunnerGoneError: it is not registered, or by somebody else; register it again.
    """
    await _registered(client, runner)
    await client.log.board.beat(_presence(runner, process))
    return RunnerReceipt(runner=runner)


async def runner_requests(
    client: Client,
    runner: str,
    *,
    relay: str = "",
    received: Sequence[int] = (),
    seconds: float = POLL_SECONDS,
) -> Requests:
    """Wait for requests to a runner; each comes until it is *received*.

    Args:
        client: of whoever registered the runner.
        runner: the incarnation that asks.
        relay: the `relay` of the requests that it has received; at first empty.
        received: the numbers of these requests.
        seconds: the longest wait.

    Raises:
        RunnerGoneError: it is not registered, or by somebody else; register it again.
    """
    await _registered(client, runner)
    longest = min(max(0.0, seconds), POLL_SECONDS)
    found, requests = await _relay_of(client).requests(runner, relay, received, longest)
    return Requests(relay=found, requests=[json_of_request(each) for each in requests])


async def runner_replies(
    client: Client, runner: str, *, relay: str, replies: Sequence[Mapping[str, JsonValue]]
) -> RunnerReceipt:
    """Send the answers to requests; an answer that comes twice counts once.

    Args:
        client: of whoever registered the runner.
        runner: the incarnation that answers.
        relay: the `relay` of the requests.
        replies: the answers.

    Raises:
        RunnerGoneError: it is not registered, or by somebody else; register it again.
        ConfigError: an answer has no known form.
    """
    await _registered(client, runner)
    answers = [reply_of(each) for each in replies]
    await _relay_of(client).answer(runner, relay, answers)
    return RunnerReceipt(runner=runner)


async def leave_runner(client: Client, runner: str, *, done: bool = False) -> RunnerReceipt:
    """Let a runner get no more calls and runs; with *done*, remove it.

    Args:
        client: of whoever registered the runner.
        runner: the incarnation that leaves.
        done: whether all its calls have ended and their answers were sent.

    Raises:
        RunnerGoneError: it is not registered, or by somebody else.
    """
    fleet = client.fleet_log
    fact = (await _registered(client, runner)).model_copy(
        update={"epoch": (await fleet.read()).epoch, "at": client.log.clock.now()}
    )
    if not done:
        leaving = fact.model_copy(update={"runner": "", "blueprints": ()})
        await fleet.record([leaving], client.log.user)
        return RunnerReceipt(runner=runner)
    removed = RunnerRemoved(
        incarnation=runner,
        reason="it has left",
        graceful=True,
        epoch=fact.epoch,
        at=fact.at,
    )

    async def tell(_: FleetEvent) -> Sequence[FactWrite]:
        # Whoever has the scope `runner` need not be allowed to read.
        whole = acting_for(client, Person(client.log.user)).log
        async with read_models(whole) as found:
            runs = claimed_runs(found.db)
        claimed = [ClaimedRun(stream, claimer, unread > 0) for stream, claimer, unread in runs]
        return removal_messages(removed, claimed)

    await fleet.record([removed], client.log.user, tell)
    await client.log.board.leave(runner)
    return RunnerReceipt(runner=runner)


async def _registered(client: Client, runner: str) -> RunnerRegistered:
    """Return the registration of *runner* by the person of *client*.

    Raises:
        RunnerGoneError: there is none.
    """
    client.log.check_may("runner")
    found = (await client.fleet_log.read()).runners.get(runner)
    if found is None or found.fact.node or found.fact.by != client.log.user:
        raise RunnerGoneError(runner, "it is not registered; register it again")
    return found.fact


def _relay_of(client: Client) -> RelayPort:
    if client.log.relay is None:
        why = "this server keeps no runners; start it by `cueline up --serve`"
        raise ConfigError("runner", why)
    return client.log.relay


def _presence(incarnation: str, process: Process) -> Presence:
    told: dict[str, Any] = asdict(process)
    return replace(presence_of("runner"), incarnation=incarnation, **told)
