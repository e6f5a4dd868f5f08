"""The states of a host or runner, and what its fleet does at each fact about it.

A worker is *starting*, maybe *pending*, and *running* until it is *lost*: then its place is given
to another, and Ray is asked whether it has *ended*. If nobody knows, it is *unreachable*: a runner
that answers again is running again, because sessions wait for its calls; a host is ended.
"""

from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from cueline.deciders.fleet import Group

Phase = Literal["starting", "pending", "running", "lost", "unreachable", "ended"]
FULL = "its node is full"
"""Why a worker leaves for which the log's own node has no room."""


class WorkerState(Struct, frozen=True):
    """The state of a worker, as its fleet knows it. Times are seconds of any one clock."""

    group: Group
    node: str = ""
    """Its Ray node; empty until Ray has chosen one."""
    phase: Phase = "starting"
    leaves: str = ""
    """Why it accepts no more work: it retires, or its node is drained or has no room."""
    is_known: bool = False
    """Whether hosts may have calls in it, so that they have to be told of it."""
    silent: bool = False
    """Whether it does not answer."""
    was_lost: bool = False
    """Whether it has been lost before, so that it is back once it runs."""
    load: int = 0
    """The number of its sessions, or of the unsettled calls in its last answer."""
    began: float = 0.0
    since: float = 0.0
    """The time of the last change between idle and busy, or of its loss."""

    @property
    def is_member(self) -> bool:
        """Whether it is not lost."""
        return self.phase in {"starting", "pending", "running"}

    @property
    def counts(self) -> bool:
        """Whether it counts as one of the wanted workers."""
        return self.is_member and not self.leaves


class Begins(Struct, frozen=True):
    """The fleet has got the worker: one it has just created, or an adopted one."""


class Waits(Struct, frozen=True):
    """The worker waits for a node that can hold it."""

    own_node: str
    """The node of the log, for which no worker waits: another one starts elsewhere."""


class Joined(Struct, frozen=True):
    """The worker has started on *node*."""

    node: str


class Loaded(Struct, frozen=True):
    """The worker has so much work."""

    load: int


class Leaves(Struct, frozen=True):
    """The worker has to finish its work, and end."""

    reason: str


class Silent(Struct, frozen=True):
    """The worker does not answer."""


class Lost(Struct, frozen=True):
    """The process of the worker ended, is silent, or was killed because it did not start."""

    failure: str | None = None
    """Why it did not start."""


class Unreachable(Struct, frozen=True):
    """Nobody knows whether the lost worker has ended; the evidence is that of its loss."""

    evidence: str


class Answers(Struct, frozen=True):
    """The unreachable worker answers again."""


class Ends(Struct, frozen=True):
    """The process of the lost worker has ended."""

    evidence: str


Fact = Begins | Waits | Joined | Loaded | Leaves | Silent | Lost | Unreachable | Answers | Ends

What = Literal["joined", "lost", "back", "leaves", "gone"]
"""Lost: accepts no more work. Back: accepts work again. Leaves: a runner finishes its calls.

Gone: the worker has ended.
"""


class Tell(Struct, frozen=True):
    """Inform the dispatcher."""

    what: What
    evidence: str = ""


class Ready(Struct, frozen=True):
    """Let the start of the fleet return, or fail."""

    failure: str | None = None


class Bury(Struct, frozen=True):
    """Inform all that the worker and its running calls have ended."""

    evidence: str


Action = Tell | Ready | Bury | Literal["watch", "notify", "replace", "retire", "end"]
"""What the fleet does.

Watch: the worker starts, until it is lost. Notify: the hosts get the list of runners. Replace:
missing workers start. Retire: the worker finishes its work and ends. End: its process is ended.
"""


def note(state: WorkerState, fact: Fact, now: float) -> tuple[WorkerState, list[Action]]:
    """Return the state after *fact*, and what the fleet does about it, in this order."""
    is_host = state.group.kind == "host"
    changes: dict[str, object] = {}
    actions: list[Action] = []
    match fact:
        case Begins():
            changes = {"began": now}
            actions = ["watch"] if state.is_member else []
            actions += ["retire"] if actions and state.leaves else []
        case Waits(node) if state.node == node and state.group.per_node is None:
            changes = {"leaves": FULL}
        case Waits():
            changes = {"phase": "pending", "is_known": False}
            actions = [Ready(), "notify"] if is_host else ["notify"]
        case Joined(node):
            changes = {"phase": "running", "node": node, "is_known": True, "load": 0, "since": now}
            actions = [Ready()] if is_host and not state.leaves else []
            actions += ["notify", Tell("back" if state.was_lost else "joined")]
        case Loaded(load):
            is_same = bool(load) == bool(state.load)
            changes = {"load": load, "since": state.since if is_same else now}
        case Leaves(reason):
            changes = {"leaves": reason}
            actions = ["retire"] if is_host else [Tell("leaves"), "retire"]
        case Silent():
            changes = {"silent": True}
        case Lost(failure):
            changes = {"phase": "lost", "was_lost": True, "since": now}
            fails = failure is not None and is_host and not state.leaves
            actions = [Ready(failure), "replace"] if fails else ["replace"]
        case Unreachable(evidence):
            changes = {"phase": "unreachable"}
            actions = ["notify", Tell("lost", evidence)]
        case Answers() | Ends() if is_host and state.phase == "unreachable":
            # Its sessions already run elsewhere.
            changes, actions = {"phase": "ended"}, ["end"]
        case Ends(evidence):
            changes = {"phase": "ended"}
            actions = [Bury((state.phase == "lost" and state.leaves) or evidence)]
        case Answers():
            changes = {"silent": False, "is_known": True}
            if not state.leaves:
                # D13: it is as good as before. If it is one too many now, one of them retires.
                changes |= {"phase": "running", "load": 0, "began": now, "since": now}
                actions = ["watch"]
    return replace(state, **changes), actions
