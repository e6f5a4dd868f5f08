"""Makes one attempt at a tool call: runs it, or recovers its outcome.

What comes from outside is sanitized before the rules see it (I11).
"""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable
from contextlib import suppress
from datetime import datetime, timedelta
from typing import TypeVar

from msgspec.structs import replace

from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.entity import Entity
from cueline.actors.host_dependencies import REACH_SECONDS, HostDependencies
from cueline.actors.rendered_output import RenderedOutput, render_output, sanitize_text
from cueline.actors.runner import CallName, RunnerPort, ToolReport, digest_of_order
from cueline.actors.tool_port import JSON, FileImage, ToolOrder, ToolQuestion, ToolTask
from cueline.deciders.matching import call_demands
from cueline.deciders.retry import poll_at, task_deadline
from cueline.deciders.session.failed_call import result_given
from cueline.deciders.session.run import claimed_by
from cueline.deciders.session.wait import task_cause
from cueline.errors import (
    FencedError,
    RunnerBusyError,
    RunnerGoneError,
    SecretLeakError,
    StaleOrderError,
)
from cueline.events.agent import ToolSpec
from cueline.events.agent_parts import VALUE_LIMIT, Demands, too_large
from cueline.events.codes import Cause
from cueline.events.fact import json_or_text
from cueline.events.input_request import REQUESTS_LIMIT, InputRequest, digest_of
from cueline.events.message import ImageBlock, canonical_json, message_text
from cueline.events.sanitize import sanitize
from cueline.events.session import (
    FileChange,
    SessionWaiting,
    ToolAsked,
    ToolDeferred,
    ToolFailed,
    ToolReconciled,
    ToolReturned,
)

POLL_SECONDS = 0.05
LONGEST_MESSAGE = 50_000
"""The most characters of a failure's message."""

Answer = TypeVar("Answer")
Outcome = ToolReturned | ToolAsked | ToolDeferred | ToolFailed | SessionWaiting
_ENDS_TASK = frozenset({"tool_error", "lost"})
"""The kinds of failures that end a task; after any other the server is asked again."""


class ToolCaller:
    """Sends the tool calls of one session to runners.

    Each method raises `FencedError` if a runner serves a newer owner of the session.
    """

    __slots__ = ("_dependencies", "_entity", "_loaded_agent")

    def __init__(
        self, entity: Entity, loaded_agent: LoadedAgent, dependencies: HostDependencies
    ) -> None:
        self._entity = entity
        self._loaded_agent = loaded_agent
        self._dependencies = dependencies

    async def run(self, order: ToolOrder) -> Outcome:
        """Run the call on the runner that the order names."""
        name = name_of(order)
        if digest_of_order(order) != order.digest:
            # I9: the call is not the granted one; the runner checks again.
            return self.failed(name, "not_granted", "the call was changed")
        redactors = self._dependencies.live_text.redactors
        redactors[order.key] = self._loaded_agent.redactor
        try:
            report = await _fenced(name, self._port(order.runner).execute(order))
        except RunnerBusyError as error:
            return self.failed(name, "not_started", str(error))
        except RunnerGoneError:
            return await self.recover(name, order.tool)
        finally:
            redactors.pop(order.key, None)
        return await self._reported(name, report)

    async def recover(self, name: CallName, tool: ToolSpec) -> Outcome:
        """Return the outcome of a started call; run the call again only if that is allowed."""
        clock = self._dependencies.clock
        until = clock.now() + timedelta(seconds=REACH_SECONDS)
        while True:
            evidence = await self._dependencies.runners.gone(name.runner)
            if evidence is not None:
                return self.failed(name, "lost", evidence)
            try:
                report = await _fenced(name, self._port(name.runner).outcome(name))
            except RunnerGoneError as error:
                if clock.now() < until:
                    await clock.sleep(POLL_SECONDS)
                    continue
                if self._runs_elsewhere(tool, name.runner):
                    return self.failed(name, "lost", str(error))
                return self._unreached(name, error)
            if report is None:
                return self.failed(name, "not_started", "it was never begun")
            return await self._reported(name, report)

    async def reconcile(self, order: ToolOrder) -> ToolReconciled | SessionWaiting:
        """Ask the tool itself for the outcome of a call in doubt."""
        name = name_of(order)
        chosen = self._dependencies.runners.choose(self._demands(order.tool))
        try:
            finding = await _fenced(name, self._port(chosen or "").reconcile(order))
        except RunnerGoneError as error:
            return self._unreached(name, error)
        happened = finding.outcome == "happened"
        content = finding.output.encode(errors="replace")
        told = await render_output(
            content, None, self._loaded_agent.redactor, self._loaded_agent.journal.put_blob
        )
        text = (told.text or "It took effect.") if happened else ""
        planned = happened and self._loaded_agent.agent.plan is not None
        given = result_given(told.text, order.tool) if planned else {}
        return ToolReconciled(
            effect=_effect(name), outcome=finding.outcome, by="tool", output=text, **given
        )

    async def poll(self, order: ToolOrder) -> Outcome:
        """Ask the server of a deferred call for its task, by any runner.

        Until the task's deadline, a poll without an answer is repeated.
        """
        call = self._entity.state.call(order.effect)
        assert call is not None, "what is due is in the state"
        assert call.task is not None, "a deferred call has a task"
        chosen = self._dependencies.runners.choose(self._demands(order.tool))
        order = replace(order, runner=chosen or "")
        name, task, why = name_of(order), call.task, "it has not ended"
        assert order.task is not None, "a poll asks for a task"
        if not order.task.handle:
            return self.failed(name, "lost", "another master key encrypted the handle of its task")
        told: ToolTask | None = None
        try:
            port = self._port(name.runner)
            report = await _fenced(name, port.execute(order))
            port.forget(name)
        except (RunnerBusyError, RunnerGoneError) as error:
            why = str(error)
        else:
            told, why = report.task, report.message or why
            if told is None and (report.outcome != "failed" or report.kind in _ENDS_TASK):
                return await self._reported(name, report)
        if order.task.cancel:
            return self.failed(name, "lost", f"its task is not waited for any more: {why}")
        if told is not None and task_deadline(task.since, told.ttl_seconds) != task.deadline_at:
            return self._deferred(name, told, task.state, task.since)
        now, least = self._dependencies.clock.now(), 0.0 if told is None else told.poll_seconds
        return SessionWaiting(
            kind="task",
            cause=task_cause(call.tool),
            deadline_at=min(poll_at(task.since, now, least), task.deadline_at),
            effects=(order.effect,),
        )

    async def cancel(self, name: CallName) -> None:
        """Cancel the call on its runner; if the runner cannot be reached, recover as in `recover`.

        Without the cancellation, recovery would wait for a call that does not end.
        """
        clock = self._dependencies.clock
        until = clock.now() + timedelta(seconds=REACH_SECONDS)
        while True:
            try:
                await _fenced(name, self._port(name.runner).cancel(name))
            except RunnerGoneError:
                gone = await self._dependencies.runners.gone(name.runner)
                if gone is not None or clock.now() >= until:
                    return
                await clock.sleep(POLL_SECONDS)
            else:
                return

    def failed(
        self,
        name: CallName,
        kind: str,
        message: str,
        *,
        seconds: float = 0.0,
        retry_after: float | None = None,
    ) -> ToolFailed:
        """Return the failure of the attempt."""
        text, cleaned = sanitize_text(message, self._loaded_agent.redactor)
        return ToolFailed(
            effect=_effect(name),
            attempt=name.attempt,
            kind=kind,
            message=text[:LONGEST_MESSAGE],
            failed_at=self._dependencies.clock.now(),
            retry_after=retry_after,
            cleaned=cleaned,
            seconds=round(seconds, 3),
        )

    async def _reported(
        self, name: CallName, report: ToolReport
    ) -> ToolReturned | ToolAsked | ToolDeferred | ToolFailed:
        if report.outcome == "failed":
            return self.failed(
                name,
                report.kind,
                report.message,
                seconds=report.seconds,
                retry_after=report.retry_after,
            )
        if report.question is not None:
            return self._asked(name, report.question, report.seconds)
        if report.task is not None:
            sealed = self._dependencies.seal(report.task.handle)
            now = self._dependencies.clock.now()
            return self._deferred(name, report.task, sealed, now, report.seconds)
        loaded_agent = self._loaded_agent
        is_json = report.media_type == JSON
        if report.media_type and not is_json:
            return await self._image(name, report)
        size, value = report.truncated_from or len(report.content), None
        planned = loaded_agent.agent.plan is not None
        if planned and size > VALUE_LIMIT:
            why = too_large("its result", size)
            return self.failed(name, "result_too_large", why, seconds=report.seconds)
        if planned and is_json:
            text = report.content.decode(errors="replace")
            value = sanitize(json_or_text(text), loaded_agent.redactor)[0]
        told = await self._rendered(report.content, report.truncated_from)
        return ToolReturned(
            effect=_effect(name),
            attempt=name.attempt,
            output=told.text,
            whole=told.whole,
            size=told.size,
            kept=told.kept,
            cleaned=told.cleaned,
            seconds=round(report.seconds, 3),
            value=value,
            is_null=planned and is_json and value is None,
            changes=tuple([await self._change(each) for each in report.changes]),
        )

    async def _rendered(self, content: bytes, truncated_from: int | None) -> RenderedOutput:
        agent = self._loaded_agent
        return await render_output(content, truncated_from, agent.redactor, agent.journal.put_blob)

    def _asked(
        self, name: CallName, question: ToolQuestion, seconds: float
    ) -> ToolAsked | ToolFailed:
        """Return what the tool asks a person for as the outcome; sanitized, and not too long."""
        told = [each.model_dump(mode="json", exclude_defaults=True) for each in question.requests]
        kept, cleaned = sanitize(told, self._loaded_agent.redactor)
        requests = tuple(InputRequest(**each) for each in kept)
        size = len(canonical_json(kept))
        if not requests or size > REQUESTS_LIMIT:
            why = f"it asks a person for too much: {size:,} bytes, at most {REQUESTS_LIMIT:,}"
            return self.failed(name, "tool_error", why, seconds=seconds)
        return ToolAsked(
            effect=_effect(name),
            attempt=name.attempt,
            requests=requests,
            digest=digest_of(requests),
            state=self._dependencies.seal(question.state),
            paths=tuple(sanitize(list(question.paths), self._loaded_agent.redactor)[0]),
            cleaned=cleaned,
            seconds=round(seconds, 3),
        )

    def _deferred(
        self, name: CallName, task: ToolTask, sealed: str, since: datetime, seconds: float = 0.0
    ) -> ToolDeferred:
        """Return the task as the outcome; *sealed* is its handle, encrypted."""
        deadline_at = task_deadline(since, task.ttl_seconds)
        again = poll_at(since, self._dependencies.clock.now(), task.poll_seconds)
        return ToolDeferred(
            effect=_effect(name),
            attempt=name.attempt,
            state=sealed,
            at=since,
            poll_at=min(again, deadline_at),
            deadline_at=deadline_at,
            seconds=round(seconds, 3),
        )

    async def _change(self, image: FileImage) -> FileChange:
        """Return a changed file with its bytes before as a blob, unless they hold a secret."""
        before, (path, _) = None, sanitize_text(image.path, self._loaded_agent.redactor)
        if image.before is not None:
            with suppress(SecretLeakError):
                before = await self._loaded_agent.journal.put_blob(image.before)
        return FileChange(path, before, image.before_digest, image.after_digest, image.mode)

    async def _image(self, name: CallName, report: ToolReport) -> ToolReturned | ToolFailed:
        """Return an image as the outcome; an image with a secret is refused."""
        data = b64encode(report.content).decode()
        _, found = await asyncio.to_thread(self._loaded_agent.redactor.redact, data)
        if found:
            return self.failed(name, "tool_error", "its image holds a secret, and is not recorded")
        image = ImageBlock(media_type=report.media_type, data=data)
        told = await self._rendered(report.text, None)
        return ToolReturned(
            effect=_effect(name),
            attempt=name.attempt,
            output=message_text(told.text, [image]),
            whole=told.whole,
            size=told.size,
            kept=told.kept,
            cleaned=told.cleaned,
            media_type=report.media_type,
            image=data,
            seconds=round(report.seconds, 3),
        )

    def _runs_elsewhere(self, tool: ToolSpec, runner: str) -> bool:
        """Whether another runner can run a call that may run twice at a time.

        The result of the former runner then does not count, so the session does not wait for it.
        """
        chosen = self._dependencies.runners.choose(self._demands(tool))
        return tool.declared == "read_only" and chosen not in (None, runner)

    def _demands(self, tool: ToolSpec) -> Demands:
        return call_demands(tool, self._loaded_agent.agent, claimed_by(self._entity.state))

    def _port(self, incarnation: str) -> RunnerPort:
        port = self._dependencies.runners.find(incarnation)
        if port is None:
            raise RunnerGoneError(incarnation or "(any)", "it is not there")
        return port

    def _unreached(self, name: CallName, error: RunnerGoneError) -> SessionWaiting:
        return SessionWaiting(
            kind="runner",
            cause=Cause(code="runner_unreachable", runner=error.runner),
            deadline_at=self._dependencies.clock.now()
            + timedelta(seconds=self._dependencies.removal_seconds),
            effects=(_effect(name),),
        )


def name_of(order: ToolOrder) -> CallName:
    """Return the runner's name of the call."""
    return CallName(order.session, order.key, order.attempt, order.runner, order.epoch)


def _effect(name: CallName) -> str:
    return name.key.rpartition("/")[2]


async def _fenced(name: CallName, answer: Awaitable[Answer]) -> Answer:
    """Raise `FencedError` if the runner serves a newer owner, else `RunnerGoneError`."""
    try:
        return await answer
    except StaleOrderError as error:
        if error.current > name.epoch:
            raise FencedError(name.session, name.epoch, error.current) from error
        raise RunnerGoneError(name.runner, "another incarnation runs under its name") from error
