"""The process that runs tools, one call at a time."""

import asyncio
import inspect
import os
import resource
import select
import signal
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from itertools import chain
from pathlib import Path
from types import FrameType
from typing import Any, NoReturn

from cueline.actors.tool_port import SandboxPlace
from cueline.errors import ToolChangedError, ToolFailedError, ToolImportError
from cueline.events.agent import ToolSpec
from cueline.events.agent_parts import Isolation
from cueline.events.codes import NOT_STARTED
from cueline.events.sandbox import SandboxSpec
from cueline.tools.progress import ProgressReporter, Report, drop_progress
from cueline.tools.recorded_tool import load_recorded
from cueline.tools.result import failure_of, finding_of, is_transient, output_of, transient_failure
from cueline.tools.sandbox import mirrored
from cueline.tools.shell import COMMANDS
from cueline.tools.tool import Tool, ToolContext
from cueline.tools.worker_protocol import Head, pack, packed_images, receive, send

LIMITS = sorted({getattr(resource, name) for name in dir(resource) if name[:7] == "RLIMIT_"})
TERMINATED = 128 + signal.SIGTERM


def serve(requests: int, replies: int) -> None:
    """Answer requests until the runner is gone."""
    here = os.getpid()
    home = os.open(".", getattr(os, "O_PATH", os.O_RDONLY))
    mask = os.umask(0)
    limits = {number: resource.getrlimit(number) for number in LIMITS}
    os.umask(mask)
    send(replies, {"kind": "ready"})
    while (request := receive(requests)) is not None:
        # Before each call, because a tool may have changed the signals. If SIGCHLD is ignored, the
        # status of ended children is lost.
        signal.signal(signal.SIGTERM, terminate)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        reporter = ProgressReporter(partial(report_progress, replies))
        head, body = answer(request, here, reporter)
        if os.getpid() != here:
            return  # the tool has forked, and only its parent may answer
        # The next call may be of another session, whose relative paths begin here.
        os.fchdir(home)
        os.umask(mask)
        reporter.end()
        head["spent"] = not restore(limits)
        send(replies, head, body)


def report_progress(replies: int, share: float | None, text: str) -> None:
    """Tell the runner of the progress of the call, unless that would wait."""
    (frame,) = pack({"kind": "progress", "share": share, "text": text})
    # A pipe that is writable takes this many bytes at once.
    ready = select.poll()
    ready.register(replies, select.POLLOUT)
    if len(frame) <= select.PIPE_BUF and ready.poll(0):
        os.write(replies, frame)


def restore(limits: Mapping[int, tuple[int, int]]) -> bool:
    """Restore the *limits* that a tool has changed; return False if that is not allowed."""
    with suppress(OSError, ValueError):  # a lowered hard limit cannot be raised
        for number, limit in limits.items():
            if resource.getrlimit(number) != limit:
                resource.setrlimit(number, limit)
        return True
    return False


def terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Let the tool clean up, for a limited time."""
    # A tool that also catches `SystemExit` is killed a little later.
    signal.signal(signal.SIGTERM, leave)
    raise SystemExit(TERMINATED)


def leave(_signal: int, _frame: FrameType | None) -> NoReturn:
    """Exit at once."""
    os._exit(TERMINATED)


def answer(request: Head, here: int, report: Report) -> tuple[Head, bytes]:
    """Answer *request*; every error becomes an answer of the process *here*."""
    try:
        return perform(request, report)
    except ToolImportError as error:
        kind = "changed" if isinstance(error, ToolChangedError) else "missing"
        return {"kind": kind, "subject": error.subject, "reason": error.reason}, b""
    except BaseException as error:
        if os.getpid() != here:
            raise
        if signal.getsignal(signal.SIGTERM) is leave:
            os._exit(TERMINATED)
        return _failed(failure_of(error)), b""


def _failed(failure: ToolFailedError) -> Head:
    return {
        "kind": "failed",
        "fault": failure.kind,
        "message": failure.message,
        "retry_after": failure.retry_after,
    }


def perform(request: Head, report: Report = drop_progress) -> tuple[Head, bytes]:
    """Run the tool, or its `reconcile`, or only load it, and return the answer."""
    tool = load_recorded(ToolSpec.model_validate(request["tool"]))
    if request["verb"] == "load":
        return {"kind": "loaded"}, b""
    context = context_of(request["context"], report)
    if request["verb"] == "reconcile":
        finding = finding_of(await_if_needed(reconcile(tool, context.key)))
        return {"kind": "found", "outcome": finding.outcome}, finding.output.encode()
    try:
        with _placed(tool, request["arguments"], context) as context:
            output = output_of(await_if_needed(tool.run(request["arguments"], context)))
    except Exception as error:
        # In another tool, the error may come from a command that the tool ran after an effect (I5).
        if isinstance(error, ToolFailedError) and error.kind == NOT_STARTED and tool in COMMANDS:
            return _failed(error), b""
        if is_transient(error, tool.transient):
            raise transient_failure(error) from None
        raise
    told: Head = {"truncated_from": output.truncated_from, "media_type": output.media_type}
    changes, befores = packed_images(context.changes)
    told |= {"size": len(output.content), "changes": changes}
    return {"kind": "returned", **told}, output.content + befores


def _placed(
    tool: Tool, arguments: Mapping[str, Any], context: ToolContext
) -> AbstractContextManager[ToolContext]:
    """Return a context in which *tool* finds the files that it names, also those of a sandbox."""
    if context.sandbox is None or not tool.needs_workspace or tool in COMMANDS:
        return nullcontext(context)
    named = [arguments[name] for name in tool.paths if name in arguments]
    files = chain.from_iterable([each] if isinstance(each, str) else each for each in named)
    return mirrored(context, list(files))


def reconcile(tool: Tool, key: str) -> object:
    """Ask the tool for the outcome of the call with *key*.

    Raises:
        ToolFailedError: the tool has no `reconcile`.
    """
    if tool.reconcile is None:
        raise ToolFailedError("tool_error", f"{tool.name} declares no reconcile")
    return tool.reconcile(key)


def context_of(told: Head, report: Report) -> ToolContext:
    """Return the context that the runner has sent."""
    parts = {
        "folder": told["folder"] and Path(told["folder"]),
        "isolation": Isolation.model_validate(told["isolation"]),
        "environment": tuple(told["environment"]),
        "report": report,
        "hidden": tuple(map(Path, told["hidden"])),
        "sandbox": _sandbox_of(told["sandbox"]),
    }
    return ToolContext(**{**told, **parts})


def _sandbox_of(told: Any) -> SandboxPlace | None:
    return told and SandboxPlace(SandboxSpec.model_validate(told[0]), told[1])


def await_if_needed(value: Any) -> object:
    """Return *value*, or the result of awaiting or iterating it."""
    if inspect.isgenerator(value):
        return list(value)  # iterated here, so that errors are the tool's failure
    if not inspect.isawaitable(value):
        return value

    async def wait() -> object:
        return await value

    return asyncio.run(wait())
