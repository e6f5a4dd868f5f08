"""The circuit breakers in front of the calls of one session."""

from collections.abc import Iterator, Mapping, Sequence
from types import MappingProxyType

from msgspec import Struct

from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.breaker_registry import BreakerRegistry, BreakerTarget
from cueline.deciders.session import SessionState
from cueline.deciders.session.due import CallModel, Effect, RecoverTool, ReserveBudget, RunTool
from cueline.events.agent import answering
from cueline.events.codes import Cause
from cueline.events.session import (
    ModelFailed,
    ModelReplied,
    SessionEvent,
    SessionWaiting,
    ToolFailed,
    ToolReturned,
)
from cueline.events.stream import tenant_of

_NONE: Mapping[str, BreakerTarget] = MappingProxyType({})


class AcquireProbe(Struct, frozen=True):
    """Request to acquire the probe of a breaker for an effect."""

    effect: str
    target: BreakerTarget
    early: bool = False
    """Whether the probe may start before its time, because a person resumed the session."""


class BreakerGuard:
    """Checks the breakers before each call, and reports each outcome to them."""

    __slots__ = ("_breakers", "_loaded_agent", "_own", "_stream", "_tools")

    def __init__(self, breakers: BreakerRegistry, stream: str, loaded_agent: LoadedAgent) -> None:
        self._breakers = breakers
        self._stream = stream
        self._loaded_agent = loaded_agent
        tenant = tenant_of(stream)
        self._own = breakers.of_model(tenant, loaded_agent.agent)
        """The breaker of the agent's own model, looked up once because every turn needs it."""
        targets = ((tool.name, breakers.of_tool(tenant, tool)) for tool in loaded_agent.agent.tools)
        self._tools = {name: target for name, target in targets if target is not None} or _NONE

    async def read(self) -> None:
        """Read every breaker that a call of the session may meet."""
        await self._breakers.know(self._all())

    def blocked_effects(
        self, effect: CallModel | ReserveBudget | RunTool, state: SessionState
    ) -> SessionWaiting | AcquireProbe | None:
        """Return a wait or a probe to do instead of *effect*; None if the effect may start."""
        target = self.target_of(effect, state)
        if target is None:
            return None
        early = _is_early(effect, state)
        admission = self._breakers.admission(target, self._key(effect.effect), early=early)
        if admission.answer == "go":
            return None
        if admission.answer == "probe":
            return AcquireProbe(effect.effect, target, early)
        assert admission.code is not None, "a wait has a cause"
        return SessionWaiting(
            kind="breaker",
            cause=Cause(code=admission.code, dependency=target.shown, failure=admission.kind),
            deadline_at=admission.until,
            effects=(effect.effect,),
        )

    def may_retry(self, state: SessionState) -> bool:
        """Whether an effect that a breaker blocked may start now."""
        if not state.blocked_by_breaker:
            return False
        return any(
            self._breakers.admission(target, self._key(effect)).answer != "wait"
            for effect, target in self._blocked(state)
        )

    async def probe(self, asked: AcquireProbe) -> Sequence[SessionEvent]:
        """Try to acquire the probe. Nothing is recorded; `blocked_effects` uses the result."""
        await self._breakers.probe(asked.target, self._key(asked.effect), early=asked.early)
        return ()

    async def record_outcome(self, target: BreakerTarget, outcome: SessionEvent) -> None:
        """Report the outcome of a call to its breakers."""
        match outcome:
            case ModelReplied(effect=name) | ToolReturned(effect=name):
                await self._breakers.record_success(target, self._key(name))
            case ModelFailed(effect=name) | ToolFailed(effect=name):
                kind, seconds = outcome.kind, outcome.retry_after
                await self._breakers.record_failure(
                    target, self._key(name), kind, retry_after=seconds
                )
            case _:
                pass

    def target_of(self, effect: Effect, state: SessionState) -> BreakerTarget | None:
        """Return the breakers in front of *effect*; None if no breaker applies to it."""
        match effect:
            case CallModel(fallback=fallback) | ReserveBudget(fallback=fallback):
                return self._model(fallback)
            case RunTool(effect=name) | RecoverTool(effect=name):
                return self._tool(name, state)
            case _:
                return None

    def _all(self) -> Iterator[BreakerTarget]:
        for fallback in range(len(self._loaded_agent.agent.fallback) + 1):
            yield self._model(fallback)
        yield from self._tools.values()

    def _asking(self, state: SessionState) -> Iterator[tuple[str, BreakerTarget]]:
        model = state.turn.model
        if model is not None:
            yield model.effect, self._model(model.fallback)
        for call in state.turn.awake:
            if (target := self._tool(call.effect, state)) is not None:
                yield call.effect, target

    def _blocked(self, state: SessionState) -> Iterator[tuple[str, BreakerTarget]]:
        model = state.turn.model
        kept = {call.effect for call in state.turn.awake if call.blocked_by_breaker}
        if model is not None and model.blocked_by_breaker:
            kept.add(model.effect)
        return ((effect, target) for effect, target in self._asking(state) if effect in kept)

    def _model(self, fallback: int) -> BreakerTarget:
        if fallback == 0:
            return self._own
        agent = answering(self._loaded_agent.agent, fallback)
        return self._breakers.of_model(tenant_of(self._stream), agent)

    def _tool(self, effect: str, state: SessionState) -> BreakerTarget | None:
        call = state.call(effect) if self._tools else None
        return None if call is None else self._tools.get(call.tool)

    def _key(self, effect: str) -> str:
        return f"{self._stream}/{effect}"


def _is_early(effect: CallModel | ReserveBudget | RunTool, state: SessionState) -> bool:
    """Whether a person asked to try *effect* now."""
    if isinstance(effect, RunTool):
        call = state.call(effect.effect)
        return call is not None and call.early
    return state.turn.model is not None and state.turn.model.early
