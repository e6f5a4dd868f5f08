"""Makes one attempt at a model call, and returns its outcome as a fact."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from itertools import islice
from typing import Final

from msgspec.structs import replace

from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.background_task import isolate_cancellation
from cueline.actors.host_dependencies import HostDependencies
from cueline.actors.model_port import Model, ModelReply, ModelRequest
from cueline.deciders.compaction import fitted
from cueline.deciders.retry import silence
from cueline.deciders.session.budget import known_usage
from cueline.deciders.session.due import CallModel
from cueline.deciders.tool_search import named_call
from cueline.errors import ConfigError, ProviderRefusedError, ProviderUnavailableError
from cueline.events.agent import CALL_TOOL, SEARCH_SCHEME, AgentSpec, answering
from cueline.events.codes import SAID
from cueline.events.message import Cost, Estimate, TextBlock, ToolCall, Usage, prompt_size
from cueline.events.session import Cut, ModelFailed, ModelReplied, calls_of

_NOTHING: Final = "it ended its turn without text and calls"


class ModelCaller:
    """Calls the model for one session."""

    __slots__ = ("_dependencies", "_loaded_agent", "_stream")

    def __init__(
        self, stream: str, loaded_agent: LoadedAgent, dependencies: HostDependencies
    ) -> None:
        self._stream = stream
        self._loaded_agent = loaded_agent
        self._dependencies = dependencies

    async def call(
        self, effect: CallModel, turn: int, messages: Sequence[bytes], cut: Cut | None = None
    ) -> ModelReplied | ModelFailed:
        """Make one attempt; every failure becomes a `ModelFailed`.

        With a *cut*, the reply is a summary: only its text is recorded.
        """
        began = self._dependencies.clock.now()
        outcome = await self._outcome(effect, turn, messages, began, cut)
        if outcome.type == "ModelFailed":
            return outcome.model_copy(update={"seconds": self._since(began)})
        return outcome

    def estimated(
        self, effect: CallModel, outcome: ModelReplied | ModelFailed, messages: Sequence[bytes]
    ) -> ModelReplied | ModelFailed:
        """Add the highest possible cost to *outcome* if its usage is unknown."""
        if known_usage(outcome) is not None:
            return outcome
        agent = answering(self._loaded_agent.agent, effect.fallback)
        return outcome.model_copy(
            update={"cost": highest_cost(self._dependencies, agent, messages)}
        )

    def _since(self, began: datetime) -> float:
        return round((self._dependencies.clock.now() - began).total_seconds(), 3)

    async def _outcome(
        self,
        effect: CallModel,
        turn: int,
        messages: Sequence[bytes],
        began: datetime,
        cut: Cut | None,
    ) -> ModelReplied | ModelFailed:
        try:
            agent, model = self._loaded_agent.model(effect.fallback)
            request = ModelRequest(
                session=self._stream,
                effect=effect.effect,
                turn=turn,
                attempt=effect.attempt,
                agent=agent,
                messages=messages,
            )
            if cut is None:
                reply = await self._reply(model, request)
            else:
                reply = _summary(await isolate_cancellation(model.reply(request)))
            replied = await self._replied(effect, agent, reply, self._since(began), messages)
            return replied if cut is None else replied.model_copy(update={"cut": cut})
        except (ProviderUnavailableError, ProviderRefusedError) as error:
            failed = self.failed(effect, _said(error.kind), error.message, error.retry_after)
            return self._billed(failed, effect, error.used)
        except ConfigError as error:
            return self.failed(effect, "config", str(error))
        except asyncio.CancelledError:
            return self.failed(effect, "cancelled", "it was stopped")
        except Exception as error:  # noqa: BLE001 - a provider's bug fails this attempt only
            return self.failed(effect, "unknown", f"{type(error).__name__}: {error}")

    async def _reply(self, model: Model, request: ModelRequest) -> ModelReply:
        """Return the reply; watchers get its pieces while it arrives."""
        redactor = self._loaded_agent.redactor
        deltas = self._dependencies.live_text.sink(
            self._stream, request.effect, request.attempt, redactor
        )
        reply = await isolate_cancellation(model.reply(request, deltas))
        deltas.end()
        return reply

    def failed(
        self, effect: CallModel, kind: str, message: str, retry_after: float | None = None
    ) -> ModelFailed:
        """Return a `ModelFailed`; secrets in the vendor's message are removed."""
        told = self._loaded_agent.redactor.redact_parts(message)
        return self._loaded_agent.clean(
            ModelFailed(
                effect=effect.effect,
                attempt=effect.attempt,
                kind=kind,
                message=told,
                failed_at=self._dependencies.clock.now(),
                retry_after=retry_after,
            )
        )

    def _billed(
        self, failed: ModelFailed, effect: CallModel, used: dict[str, int] | None
    ) -> ModelFailed:
        """Add to *failed* the cost of the attempt, if the vendor reported usage."""
        if used is None:
            return failed
        usage, agent = Usage(**used), answering(self._loaded_agent.agent, effect.fallback)
        cost = self._dependencies.price(agent, agent.model, usage)
        return failed.model_copy(update={"usage": usage, "cost": cost})

    async def _replied(
        self,
        effect: CallModel,
        agent: AgentSpec,
        reply: ModelReply,
        seconds: float,
        messages: Sequence[bytes],
    ) -> ModelReplied | ModelFailed:
        code = None
        with suppress(Exception):  # a rule that raises loses no reply
            code = silence(reply.content, reply.calls, reply.stop_reason, messages)
        if code is not None:
            return self._billed(self.failed(effect, code, _NOTHING), effect, _used(reply))
        replied = ModelReplied(
            effect=effect.effect,
            attempt=effect.attempt,
            content=reply.content,
            calls=tuple(self._checked(call) for call in reply.calls),
            stop_reason=reply.stop_reason,
            usage=reply.usage,
            cost=self._dependencies.price(agent, reply.model, reply.usage),
            model=reply.model,
            seconds=seconds,
            lacking=reply.lacking,
        )
        replied = self._loaded_agent.clean(replied)
        if not self._loaded_agent.estimates:
            return replied
        estimates = await self._estimates(replied)
        return self._loaded_agent.clean(replied.model_copy(update={"estimates": estimates}))

    async def _estimates(self, replied: ModelReplied) -> dict[str, Estimate]:
        """Return the estimated costs of the calls, computed once for all decisions (I10)."""
        asked = {}
        most = self._loaded_agent.agent.limits.max_tool_calls_per_turn
        for effect, call in islice(calls_of(replied).items(), most):
            tool = self._loaded_agent.tools.get(call.name)
            runs = call.problem is None and call.malformed is None
            if runs and tool is not None and tool.estimates:
                asking = self._dependencies.estimate(tool, call.arguments)
                asked[effect] = asyncio.ensure_future(asking)
        if asked:
            # Concurrent, and ended by a stop: the reply is paid for and not recorded yet.
            with suppress(asyncio.CancelledError):
                await asyncio.wait(asked.values())
        return {effect: _made(estimate) for effect, estimate in asked.items()}

    def _checked(self, call: ToolCall) -> ToolCall:
        tool = self._loaded_agent.tools.get(call.name)
        if tool is None or call.malformed is not None:
            return call
        problem = self._dependencies.check_call(tool, call.arguments)
        if not problem and tool.name == CALL_TOOL and tool.target.startswith(SEARCH_SCHEME):
            named = named_call(call, self._loaded_agent.tools)
            return named if named.problem else self._checked(named)
        return call.model_copy(update={"problem": problem}) if problem else call


def sent_to(agent: AgentSpec, messages: Sequence[bytes]) -> Sequence[bytes]:
    """Return *messages* for the model of *agent*: each result is cut to the model's window."""
    with suppress(Exception):  # a rule that raises cuts nothing
        return fitted(messages, agent.context_window)
    return messages


def highest_cost(
    dependencies: HostDependencies, agent: AgentSpec, messages: Sequence[bytes]
) -> Cost | None:
    """Return the highest possible cost of a call of *agent*; None without a known price."""
    listed = dependencies.price(agent, agent.model, Usage())
    _, usd = dependencies.bound(agent, prompt_size(messages), None)
    if listed is None or usd is None:
        return None
    return Cost(usd=usd, prices=listed.prices, estimated=True)


def _used(reply: ModelReply) -> dict[str, int] | None:
    return reply.usage.model_dump() if reply.usage.total else None


def _summary(reply: ModelReply) -> ModelReply:
    """Return the text of a reply, without calls.

    Raises:
        ProviderUnavailableError: it has no text; try again.
    """
    text = tuple(b for b in reply.content if isinstance(b, TextBlock) and b.text.strip())
    if not text:
        raise ProviderUnavailableError("malformed_reply", "it has no text", None, _used(reply))
    return replace(reply, content=text, calls=())


def _made(estimate: asyncio.Future[Estimate]) -> Estimate:
    """Return the result of *estimate*; stop it if it still runs, and return the problem."""
    if estimate.done():
        return estimate.result()
    estimate.cancel()
    return Estimate(problem="it was stopped")


def _said(kind: str) -> str:
    """Return the adapter's error kind if it is known; an unknown kind could retry without end."""
    return kind if kind in SAID else "unknown"
