"""Makes one attempt at a tool call: runs it, or recovers its outcome.

Output from outside is sanitized here, before the rules see it (I11).
"""

import asyncio
from base64 import b64encode
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import TypeVar

from msgspec import Struct

from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.entity import Entity
from cueline.actors.host_dependencies import REACH_SECONDS, HostDependencies
from cueline.actors.runner import CallName, RunnerPort, ToolReport, digest_of_order
from cueline.actors.tool_port import JSON, ToolOrder
from cueline.deciders.matching import call_demands
from cueline.deciders.session.failed_call import result_given
from cueline.deciders.session.run import claimed_by
from cueline.errors import FencedError, RunnerBusyError, RunnerGoneError, StaleOrderError
from cueline.events.agent import ToolSpec
from cueline.events.agent_parts import VALUE_LIMIT, Demands, too_large
from cueline.events.codes import Cause
from cueline.events.fact import json_or_text
from cueline.events.message import ImageBlock, attachment_text
from cueline.events.sanitize import CUT, Redactor, sanitize
from cueline.events.session import SessionWaiting, ToolFailed, ToolReconciled, ToolReturned
from cueline.events.store import BLOB_LIMIT

CHARACTERS = 1024 * 1024
"""The most characters of an output in its event; a model's window may allow fewer."""
_HEAD, _TAIL = 800_000, 160_000
_LARGE = 1024 * 1024


class RenderedOutput(Struct, frozen=True):
    """An output in its recorded form."""

    text: str
    whole: str | None = None
    """The blob with the kept output, if *text* is capped."""
    size: int | None = None
    """The size of the whole output in bytes, if *text* is capped."""
    kept: int | None = None
    """The number of kept bytes, if not all could be kept."""
    cleaned: bool = False


async def render_output(
    content: bytes,
    truncated_from: int | None,
    redactor: Redactor,
    put_blob: Callable[[bytes], Awaitable[str]],
) -> RenderedOutput:
    """Sanitize *content*, and return it in its recorded form."""
    if len(content) > _LARGE:
        # Decoding 50 MB would block the other sessions.
        text, cleaned = await asyncio.to_thread(_decoded, content, redactor)
    else:
        text, cleaned = _decoded(content, redactor)
    if len(text) <= CHARACTERS and truncated_from is None:
        return RenderedOutput(text, cleaned=cleaned)
    cleaned_bytes = text.encode()
    kept = cleaned_bytes[:BLOB_LIMIT]
    whole = await put_blob(kept)
    size = truncated_from or len(content)
    cut = truncated_from is not None or len(kept) < len(cleaned_bytes)
    what = f"the first {len(kept):,} bytes" if cut else "the whole output"
    where = f"{what} of {size:,} bytes is kept{', cleaned,' if cleaned else ''} as blob {whole}"
    return RenderedOutput(_capped(text, where), whole, size, len(kept) if cut else None, cleaned)


def _decoded(content: bytes, redactor: Redactor) -> tuple[str, bool]:
    try:
        text, replaced = content.decode(), False
    except UnicodeDecodeError:
        text, replaced = content.decode(errors="replace"), True
    text, cleaned = sanitize_text(text, redactor)
    return text, cleaned or replaced


def sanitize_text(text: str, redactor: Redactor) -> tuple[str, bool]:
    """Return *text* fit to record, and whether more than cut marks was removed."""
    kept, _ = sanitize(text, redactor)
    return kept, kept != text.replace(CUT, "")


def _capped(text: str, where: str) -> str:
    if len(text) <= CHARACTERS:
        return f"{text}\n[… {where} …]"
    left_out = len(text) - _HEAD - _TAIL
    gap = f"[… {left_out:,} characters are left out here; {where} …]"
    return f"{text[:_HEAD]}\n{gap}\n{text[-_TAIL:]}"


POLL_SECONDS = 0.05
LONGEST_MESSAGE = 50_000
"""The most characters of a failure's message."""

Answer = TypeVar("Answer")
Outcome = ToolReturned | ToolFailed | SessionWaiting


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
        try:
            report = await _fenced(name, self._port(order.runner).execute(order))
        except RunnerBusyError as error:
            return self.failed(name, "not_started", str(error))
        except RunnerGoneError:
            return await self.recover(name, order.tool)
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

    async def _reported(self, name: CallName, report: ToolReport) -> ToolReturned | ToolFailed:
        if report.outcome == "failed":
            return self.failed(
                name,
                report.kind,
                report.message,
                seconds=report.seconds,
                retry_after=report.retry_after,
            )
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
        told = await render_output(
            report.content,
            report.truncated_from,
            loaded_agent.redactor,
            loaded_agent.journal.put_blob,
        )
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
        )

    async def _image(self, name: CallName, report: ToolReport) -> ToolReturned | ToolFailed:
        """Return an image as the outcome; an image with a secret is refused."""
        data = b64encode(report.content).decode()
        _, found = await asyncio.to_thread(self._loaded_agent.redactor.redact, data)
        if found:
            return self.failed(name, "tool_error", "its image holds a secret, and is not recorded")
        image = ImageBlock(media_type=report.media_type, data=data)
        return ToolReturned(
            effect=_effect(name),
            attempt=name.attempt,
            output=attachment_text(image),
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
