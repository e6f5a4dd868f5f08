"""Exports the spans of a log to a back-end; `cueline.telemetry` makes them."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from cueline.actors.background_task import Trouble, background_task, repeat_forever
from cueline.config.problem import URL
from cueline.config.settings import TelemetrySettings
from cueline.errors import ConfigError, RejectedError
from cueline.events.telemetry import cursor_stream
from cueline.runtime.open_log import OpenLog

if TYPE_CHECKING:
    from cueline.telemetry.export import SpanExport

_LONGEST: Final = 100
_WHAT: Final = "exporting spans"


def cursor_of(endpoint: str) -> str:
    """Return the name of the cursor of a back-end, from its URL: `localhost-4318-v1-traces`.

    A query, which may have a key, is left out.
    """
    rest = endpoint.partition("://")[2].partition("?")[0]
    return re.sub(r"[^a-z0-9]+", "-", rest.lower()).strip("-")[:_LONGEST].strip("-")


def span_export(
    log: OpenLog, endpoint: str, *, cursor: str | None = None, content: bool = False
) -> "SpanExport":
    """Return the export of the spans of a log to *endpoint*.

    Raises:
        ConfigError: the packages of `cueline[otel]` are missing, or *endpoint* is no URL.
        InvalidNameError: the name of the cursor is invalid.
        RejectedError: the log is a server's.
        ForbiddenError: it needs the whole log, and the scope `admin`.
    """
    log.check_whole()
    log.check_may("admin")
    if log.server is not None:
        why = "only a process that can open the log can export its spans; do it there"
        raise RejectedError(str(log.url), why)
    if not re.match(URL, endpoint):
        why = "this is no URL without a password, such as http://localhost:4318/v1/traces"
        raise ConfigError("--to", why)
    try:
        from cueline.telemetry.export import SpanExport  # noqa: PLC0415 - an extra
        from cueline.telemetry.otlp import OtlpExporter  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        why = f"{error.name} is missing: `pip install 'cueline[otel]'` installs it"
        raise ConfigError("telemetry", why) from error
    name = cursor_of(endpoint) if cursor is None else cursor
    by = f"user:{log.user}"
    return SpanExport(log.journal(), OtlpExporter(endpoint), name, content=content, actor=by)


async def exported(log: OpenLog, endpoint: str) -> int | None:
    """Return the position up to which the back-end at *endpoint* has the spans; None: no cursor."""
    stream, position = cursor_stream(cursor_of(endpoint)), None
    version = (await log.store.head(stream)).version
    async for _, fact in log.journal().read(stream, max(version - 1, 0)):
        position = getattr(fact, "position", None)
    return position


async def follow(log: OpenLog, export: "SpanExport", on_trouble: Trouble) -> None:
    """Export the spans of a log as they come, without end; *on_trouble* gets the failures."""
    step = partial(export.step, log.clock)
    await repeat_forever(_WHAT, step, clock=log.clock, on_trouble=on_trouble)


@asynccontextmanager
async def exporting(
    log: OpenLog, settings: TelemetrySettings, on_trouble: Trouble
) -> AsyncIterator[None]:
    """Export the spans of a log until the block ends, if *settings* name a back-end.

    Raises:
        ConfigError: the packages of `cueline[otel]` are missing.
    """
    if settings.endpoint is None:
        yield
        return
    export = span_export(log, settings.endpoint, content=settings.content)
    await export.begin()
    with background_task(follow(log, export, on_trouble)):
        yield
