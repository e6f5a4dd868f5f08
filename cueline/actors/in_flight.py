"""What one session has in hand: the effects in flight, and the facts they brought."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime
from operator import attrgetter

from cueline.actors.breaker_guard import AcquireProbe
from cueline.actors.timers import Timers, Waiting
from cueline.deciders.session.due import (
    AskApproval,
    CallModel,
    Cancel,
    CloseApproval,
    CloseReservation,
    Effect,
    NotifyPeople,
    ReconcileTool,
    RecoverTool,
    ReserveBudget,
    RunTool,
)
from cueline.events.session import SessionEvent

_EFFECT = attrgetter("effect")
_NAMES: dict[type[Effect | AcquireProbe], tuple[str, Callable[[object], object]]] = {
    CallModel: ("m", _EFFECT),
    ReserveBudget: ("b", _EFFECT),
    CloseReservation: ("b", attrgetter("bill.effect")),
    RunTool: ("t", _EFFECT),
    RecoverTool: ("t", _EFFECT),
    ReconcileTool: ("t", _EFFECT),
    AskApproval: ("a", _EFFECT),
    CloseApproval: ("x", attrgetter("approval")),
    Cancel: ("c", _EFFECT),
    NotifyPeople: ("h", attrgetter("hook", "approval", "effect")),
    AcquireProbe: ("p", _EFFECT),
}
"""What each is for, and what it is about."""
Work = Callable[[Effect | AcquireProbe], Awaitable[Sequence[SessionEvent]]]


class InFlightEffects:
    """Runs effects beside each other, and wakes whoever waits for them."""

    __slots__ = ("_alarm", "_brought", "_error", "_rung", "_tasks", "_waiting")

    def __init__(self, alarm: Timers) -> None:
        self._alarm = alarm
        self._tasks: dict[str, asyncio.Task[None]] = {}
        """By the name of the effect: until its facts are taken, or it would be asked for again."""
        self._brought: list[tuple[str, Sequence[SessionEvent]]] = []
        self._error: Exception | None = None
        self._rung = False
        self._waiting: Waiting | None = None

    @property
    def empty(self) -> bool:
        """Whether nothing is in flight, and nothing was brought that nobody took."""
        return not self._tasks

    def has(self, effect: Effect | AcquireProbe) -> bool:
        """Whether *effect*, or another way to learn the same, is in hand."""
        return effect_name(effect) in self._tasks

    def asks(self, effect: str) -> bool:
        """Whether a question about that effect is on its way to the gate."""
        return f"a:{effect}" in self._tasks

    def take_up(self, effect: Effect | AcquireProbe, work: Work) -> None:
        """Begin *work*, which carries *effect* out."""
        name = effect_name(effect)
        self._tasks[name] = asyncio.create_task(self._carry_out(name, effect, work))

    def model_calls(self) -> list[str]:
        """Return the model calls that are in flight."""
        return [name.removeprefix("m:") for name in self._tasks if name.startswith("m:")]

    def cancel(self, effect: str) -> None:
        """End the model call of that effect; it brings that it was cancelled."""
        task = self._tasks.get(f"m:{effect}")
        if task is not None:
            # Not at once: cancelled before its first step, it would bring nothing, for ever.
            asyncio.get_running_loop().call_soon(task.cancel)

    def take(self) -> list[SessionEvent]:
        """Return what was brought since the last time.

        Raises whatever an effect raised: it ends the drive.
        """
        self._stop_waiting()
        if self._error is not None:
            raise self._error
        brought, self._brought = self._brought, []
        taken: list[SessionEvent] = []
        for name, facts in brought:
            del self._tasks[name]
            taken += facts
        return taken

    def ring(self) -> None:
        """Wake whoever waits."""
        self._rung = True
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def wait(self, until: datetime | None) -> Waiting:
        """Return what is done once something was brought, or somebody rang, or at *until*.

        No coroutine and no task: it is all that a session without work costs.
        """
        self._waiting = asyncio.get_running_loop().create_future()
        if self._rung:
            self._waiting.set_result(None)
        elif until is not None:
            self._alarm.set(self._waiting, until)
        return self._waiting

    def drop(self) -> None:
        """Let go of everything: nobody will take what it brings."""
        self._stop_waiting()
        for task in self._tasks.values():
            task.cancel()

    def _stop_waiting(self) -> None:
        self._rung = False
        if self._waiting is not None:
            self._alarm.drop(self._waiting)
            self._waiting = None

    async def _carry_out(self, name: str, effect: Effect | AcquireProbe, work: Work) -> None:
        """Do *work*, and wake whoever waits in its last step: a callback comes a pass later."""
        facts: Sequence[SessionEvent] = ()
        try:
            facts = await work(effect)
        except Exception as error:  # noqa: BLE001 - whatever it is, it ends the drive
            self._error = error
        finally:
            self._brought.append((name, facts))
            self.ring()


def effect_name(effect: Effect | AcquireProbe) -> str:
    """Return the name under which an effect is in hand; a call is so however it got there."""
    sign, subject = _NAMES[type(effect)]
    return f"{sign}:{subject(effect)}"
