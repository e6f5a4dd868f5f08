"""`cueline tail` and `export`: print the events of a session, also new ones."""

import asyncio
import os
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractContextManager, aclosing, asynccontextmanager, nullcontext
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Annotated, Literal

import typer

from cueline.cli import open_log
from cueline.cli.exit_report import exit_of_status
from cueline.cli.failure import Exit
from cueline.cli.option import (
    DEFAULT_LOG,
    JsonOption,
    LogOption,
    PlainOption,
    SessionArgument,
    ThinkingOption,
)
from cueline.cli.settings_context import is_thinking_hidden
from cueline.cli.terminal import is_attended
from cueline.cli.up_lookup import resume_command
from cueline.client.document import document
from cueline.client.export import event_document, export_of
from cueline.client.export_formats import cloud_event, flat_of
from cueline.client.history import History
from cueline.client.live_text import LiveTextSubscription, live_text
from cueline.client.reader import Reader
from cueline.client.session_watcher import follow as follow_session
from cueline.clock import SystemClock
from cueline.console.event_renderer import EventRenderer, reply_lines
from cueline.console.reply_preview import Bottom, ReplyPreview
from cueline.console.screen import Screen
from cueline.console.status_line import StatusLine
from cueline.console.text import date_time, json_of, one_line
from cueline.errors import ConfigError
from cueline.events.fact import Fact
from cueline.events.inbox import MessageSent
from cueline.events.log_url import LogUrl
from cueline.events.session import ModelReplied, SessionEvent
from cueline.events.store import RecordedEvent
from cueline.files import write_whole

_TICK_SECONDS = 0.2
ExportForm = Literal["json", "flat", "events", "cloudevents", "html"]


class TailView:
    """The bottom of the screen of `tail -f`."""

    def __init__(self, screen: Screen, now: Callable[[], datetime], *, hide_thinking: bool) -> None:
        self._screen = screen
        self._now = now
        self._telling = EventRenderer(whole_past=False)
        self._status = StatusLine(self._telling, ways="")
        self._preview = ReplyPreview(screen, hide_thinking=hide_thinking, whole_past=False)
        self._bottom = Bottom(screen, self._rows)

    def above(self) -> AbstractContextManager[None]:
        """Return the context in which other output is written above the bottom of the screen."""
        return self._screen.above()

    def learn(self, recorded: RecordedEvent, fact: SessionEvent | None) -> None:
        """Apply an event before it is shown."""
        if fact is not None:
            self._preview.learn(fact)
            self._telling.learn(fact, recorded.recorded_at)
            self._status.learn(fact, recorded.recorded_at)

    def show_reply(self, fact: SessionEvent | None) -> None:
        """Show a whole reply, because the line of its event has only the beginning."""
        if isinstance(fact, ModelReplied):
            thinking = not self._preview.hide_thinking
            self._screen.show(reply_lines(fact, thinking=thinking))

    def _rows(self) -> list[str]:
        status = self._status.text(self._now())
        return [*self._preview.rows(), *([f"\x1b[2m{status}\x1b[m"] if status else [])]

    @asynccontextmanager
    async def watching(self, reader: Reader, stream: str) -> AsyncIterator[None]:
        """Show the arriving reply of *stream* at the bottom, inside `async with`."""
        with live_text(reader.log, stream) as pieces, self._bottom:
            work = (self._preview_replies(pieces), self._tick(reader))
            tasks = [asyncio.create_task(each) for each in work]
            try:
                yield
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.wait(tasks)

    async def _preview_replies(self, pieces: LiveTextSubscription) -> None:
        while True:
            for piece in await pieces.take():
                self._preview.add(piece)
            for progress in pieces.take_progress():
                self._status.show_progress(progress)
            self._bottom.refresh()

    async def _tick(self, reader: Reader) -> None:
        while True:
            await reader.log.clock.sleep(_TICK_SECONDS)
            self._bottom.refresh()


Show = Callable[[RecordedEvent, SessionEvent | None], None]


def tail(
    ctx: typer.Context,
    session: SessionArgument,
    *,
    follow: Annotated[
        bool, typer.Option("-f", "--follow", help="Go on with what comes, until it has ended.")
    ] = False,
    last: Annotated[
        int, typer.Option("-n", "--last", min=0, metavar="N", help="So many of its past.")
    ] = 10,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = False,
    plain: PlainOption = False,
    hide_thinking: ThinkingOption = None,
) -> None:
    """Print a session's last events, one a line, and with -f new events.

    It does not disturb the session. With -f it ends when the session has ended, with
    that session's exit code; Ctrl-C ends it earlier. If no process drives the session,
    it prints this to stderr, and continues to wait.
    At a terminal it shows each new reply while it arrives.

    \b
    Examples:
      cueline tail 7f3a -n 20
      cueline tail -f 7f3a
      cueline tail -f 7f3a --json | jq .type
    """
    show = partial(_print, as_json=as_json, plain=plain)
    view = None
    if follow and is_attended() and not (as_json or plain):
        hide = is_thinking_hidden(ctx, hide=hide_thinking)
        view = TailView(Screen(), SystemClock().now, hide_thinking=hide)
    raise typer.Exit(open_log.run(_tail(log, session, last, show, view, follow=follow)))


async def _tail(
    log: LogUrl, name: str, last: int, show: Show, view: TailView | None, *, follow: bool
) -> Exit:
    async with open_log.reader(log) as reader:
        history = await reader.history(name, last=last)
        for recorded, fact in history.events:
            show(recorded, fact)
            if view is not None:
                view.learn(recorded, fact)
        if not follow or history.damage is not None:
            return open_log.exit_of_damage(history.damage)
        watching = nullcontext() if view is None else view.watching(reader, history.stream)
        above = nullcontext if view is None else view.above

        def say_left(why: str) -> None:
            with above():
                _say_left(log, history.id, why)

        coming = follow_session(reader.log, history, say_left)
        async with watching, aclosing(coming):
            async for recorded, fact in coming:
                if view is not None:
                    view.learn(recorded, fact)
                with above():
                    show(recorded, fact)
                if view is not None:
                    view.show_reply(fact)
        return exit_of_status(history.view.status)


def _say_left(log: LogUrl, id: str, why: str) -> None:  # noqa: A002 - the word of the log
    """Print to stderr that no process drives a session that does not rest."""
    way = resume_command(log, id)
    typer.echo(f"{id}: nobody drives it now ({why}); go on with\n  {way}", err=True)


def _print(
    recorded: RecordedEvent, fact: SessionEvent | None, *, as_json: bool, plain: bool
) -> None:
    if as_json:
        typer.echo(json_of(event_document(recorded, fact)))
        return
    what = "emptied" if fact is None else _fields(fact)
    when, type_ = date_time(recorded.recorded_at), f"{recorded.type:<18}"
    if not (plain or os.environ.get("NO_COLOR")):  # and a pipe gets none of it anyway
        bad = recorded.type.endswith(("Failed", "Refused", "InDoubt"))
        when, type_ = typer.style(when, dim=True), typer.style(type_, fg="red" if bad else "cyan")
    typer.echo(f"{recorded.version:>5}  {when}  {type_} {one_line(what, 200)}")


def _fields(fact: SessionEvent) -> str:
    told = fact.model_dump(mode="json", exclude={"type", "agent"}, exclude_defaults=True)
    message = getattr(fact, "message", None)
    if isinstance(message, Fact):  # `exclude_defaults` drops the type, the main information
        fields = told["message"]
        if isinstance(message, MessageSent):  # the lane is shown even if it is the default
            fields = {"lane": message.lane, **fields}
        told["message"] = f"{message.type} {_word(fields)}".removesuffix(" {}")
    words = (f"{key}={_word(value)}" for key, value in told.items())
    return " ".join(words)


def _word(value: object) -> str:
    return value if isinstance(value, str) else json_of(value)


def export(
    session: SessionArgument,
    *,
    form: Annotated[ExportForm, typer.Option("--format", help="How to print it.")] = "json",
    to: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write it to a file, whole or not at all.")
    ] = None,
    log: LogOption = DEFAULT_LOG,
    as_json: JsonOption = True,  # noqa: ARG001 - every command takes it; this one prints nothing else
) -> None:
    # Printed when the loop is over: Ctrl-C ends it at once.
    """Print a session, as JSON or in another format.

    \b
      json         one document: status, messages, tool calls, metrics, limits,
                   error and version
      flat         the same in camelCase, as other tools keep a session
      events       one JSON object for each event
      cloudevents  the same as CloudEvents 1.0
      html         one page that needs no server

    If a row cannot be read, it is named on stderr, all earlier events are printed, and
    the exit code is 1.

    \b
    Examples:
      cueline export 7f3a > 7f3a.json
      cueline export 7f3a --format flat --to sessions/7f3a.json
      cueline export 7f3a --format events | jq -r .type
      cueline export 7f3a --format html > 7f3a.html
    """
    log_id, history = open_log.run(_history_of(log, session))
    match form:
        case "json":
            text = json_of(document(export_of(history)), indent=2)
        case "flat":
            text = json_of(flat_of(export_of(history)), indent=2)
        case "html":
            text = _page_of(history)
        case "events":
            text = "\n".join(json_of(event_document(*each)) for each in history.events)
        case "cloudevents":
            text = "\n".join(json_of(cloud_event(log_id, *each)) for each in history.events)
    if to is None:
        typer.echo(text, nl=bool(text))
    else:
        write_whole(to, f"{text}\n")
    raise typer.Exit(open_log.exit_of_damage(history.damage))


async def _history_of(log: LogUrl, session: str) -> tuple[str, History]:
    async with open_log.reader(log) as reader:
        return reader.log.id, await reader.history(session)


def _page_of(history: History) -> str:
    """Return the page of a session.

    Raises:
        ConfigError: the packages of the extra `serve` are missing.
    """
    try:
        from cueline.gateway.pages.export import page_of
    except ModuleNotFoundError as error:
        why = f"{error.name} is missing: `pip install 'cueline[serve]'` installs it"
        raise ConfigError("--format html", why) from error
    return page_of(history)
