"""The running effects of one session, and the facts they returned."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from operator import attrgetter

from cueline.actors.breaker_guard import AcquireProbe
from cueline.actors.timers import Timers, Waiting
from cueline.deciders.session.due import (
    AskApproval,
    AttachSandbox,
    AwaitMessage,
    CallModel,
    Cancel,
    CloseApproval,
    CloseReservation,
    Effect,
    NotifyPeople,
    PollTask,
    ReconcileTool,
    RecoverTool,
    ReserveBudget,
    RunTool,
    StartChild,
)
from cueline.events.session import SessionEvent

_EFFECT = attrgetter("effect")
_NAMES: dict[type[Effect | AcquireProbe], tuple[str, Callable[[object], object]]] = {
    CallModel: ("m", _EFFECT),
    ReserveBudget: ("b", _EFFECT),
    CloseReservation: ("b", attrgetter("bill.effect")),
    RunTool: ("t", _EFFECT),
    AttachSandbox: ("s", lambda _: "sandbox"),
    StartChild: ("t", _EFFECT),
    AwaitMessage: ("t", _EFFECT),
    RecoverTool: ("t", _EFFECT),
    ReconcileTool: ("t", _EFFECT),
    PollTask: ("t", _EFFECT),
    AskApproval: ("a", _EFFECT),
    CloseApproval: ("x", attrgetter("approval")),
    Cancel: ("c", _EFFECT),
    NotifyPeople: ("h", attrgetter("hook", "approval", "effect")),
    AcquireProbe: ("p", _EFFECT),
}
"""For each type of effect: the prefix of its name, and the field with the rest of the name."""
Work = Callable[[Effect | AcquireProbe], Awaitable[Sequence[SessionEvent]]]


class InFlightEffects:
    """Runs effects concurrently, and wakes the session loop when one ends."""

    __slots__ = ("_alarm", "_brought", "_error", "_rung", "_tasks", "_waiting")

    def __init__(self, alarm: Timers) -> None:
        self._alarm = alarm
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """The tasks by effect name, until their facts are taken, so that no effect starts twice."""
        self._brought: tuple[tuple[str, Sequence[SessionEvent]], ...] = ()
        self._error: Exception | None = None
        self._rung = False
        self._waiting: Waiting | None = None

    @property
    def empty(self) -> bool:
        """Whether no effect runs and no facts wait to be taken."""
        return not self._tasks

    def has(self, effect: Effect | AcquireProbe) -> bool:
        """Whether *effect*, or another effect with the same result, is running."""
        return effect_name(effect) in self._tasks

    def asks(self, effect: str) -> bool:
        """Whether a question about that effect is being sent to the gate."""
        return f"a:{effect}" in self._tasks

    def take_up(self, effect: Effect | AcquireProbe, work: Work) -> None:
        """Start *work*, which executes *effect*."""
        name = effect_name(effect)
        loop = asyncio.get_running_loop()
        self._tasks[name] = loop.create_task(self._carry_out(name, effect, work))

    def model_calls(self) -> list[str]:
        """Return the running model calls."""
        return [name.removeprefix("m:") for name in self._tasks if name.startswith("m:")]

    def cancel(self, effect: str) -> None:
        """Cancel the model call of that effect; its fact is a cancellation."""
        task = self._tasks.get(f"m:{effect}")
        if task is not None:
            # Deferred: a task cancelled before its first step would never return facts.
            asyncio.get_running_loop().call_soon(task.cancel)

    def take(self) -> list[SessionEvent]:
        """Return the facts since the last call.

        Raises the error of a failed effect, once; it ends the session loop.
        """
        self._stop_waiting()
        if (error := self._error) is not None:
            self._error = None
            raise error
        brought, self._brought = self._brought, ()
        taken: list[SessionEvent] = []
        for name, facts in brought:
            del self._tasks[name]
            taken += facts
        return taken

    def ring(self) -> None:
        """Wake the session loop."""
        self._rung = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def wait(self, until: datetime | None) -> Waiting:
        """Return a future that is done after facts, a `ring`, or *until*.

        A future instead of a task: an idle session costs no more memory.
        """
        self._waiting = asyncio.get_running_loop().create_future()
        if self._rung or self._brought:
            self._waiting.set_result(None)
        elif until is not None:
            self._alarm.set(self._waiting, until)
        return self._waiting

    def drop(self) -> None:
        """Cancel all effects; their facts are dropped."""
        self._stop_waiting()
        for task in self._tasks.values():
            task.cancel()

    def _stop_waiting(self) -> None:
        self._rung = False
        if self._waiting is not None:
            self._alarm.drop(self._waiting)
            self._waiting = None

    async def _carry_out(self, name: str, effect: Effect | AcquireProbe, work: Work) -> None:
        """Run *work*, and wake the loop in its last step; a done callback would come later."""
        facts: Sequence[SessionEvent] = ()
        try:
            facts = await work(effect)
        except Exception as error:  # noqa: BLE001 - any error ends the session loop
            self._error = error
        finally:
            self._brought = (*self._brought, (name, facts))
            self.ring()


def effect_name(effect: Effect | AcquireProbe) -> str:
    """Return the name of an effect in flight; a run and a recovery of a call have one name."""
    sign, subject = _NAMES[type(effect)]
    return f"{sign}:{subject(effect)}"
