"""Questions about sessions; each imports the modules that it needs, so that `list` is quick."""

from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any

from cueline.client.argument_check import check_limit, cursor_of, read_cursor
from cueline.client.open_read_models import (
    Notice,
    Page,
    check_content,
    find_session,
    print_notice,
    read_models,
    session_ids,
)
from cueline.client.remote import at_server
from cueline.runtime.open_log import OpenLog

if TYPE_CHECKING:
    from cueline.client.compare import SessionDiff
    from cueline.client.export import Export
    from cueline.client.file_changes import FileDiff
    from cueline.client.history import History
    from cueline.client.limits import Budget
    from cueline.client.redecide import Check
    from cueline.client.rerun import RerunResult
    from cueline.client.show import SessionDetails
    from cueline.client.workflow import WorkflowState
    from cueline.events.inbox import StartAsked
    from cueline.projections.session import SessionRow
    from cueline.projections.transcript import TranscriptLine


class SessionQuestions:
    """An open log for questions about sessions.

    A session is given by its id, any unique beginning of the id, or its stream. A method about
    one session raises `UnknownSessionError` if it does not exist; the message suggests similar
    ids. Each method raises `LogUnavailableError` if the log cannot be read.
    """

    def __init__(self, log: OpenLog, notice: Notice = print_notice) -> None:
        self.log = log
        self.notice = notice

    @at_server
    async def show(self, session: str) -> "SessionDetails":
        """Return the details of one session, without reading its stream."""
        from cueline.client.show import session_details

        return await session_details(self.log, await self.find(session), notice=self.notice)

    async def history(
        self,
        session: str,
        *,
        until: int | None = None,
        last: int | None = None,
        outputs: bool = False,
    ) -> "History":
        """Return the events of a session: see `read_history`.

        Raises:
            RejectedError: the session has fewer versions than *until*.
        """
        from cueline.client.history import read_history

        stream = await self.find(session)
        return await read_history(self.log, stream, until=until, last=last, outputs=outputs)

    async def excerpt(self, session: str, *, outputs: bool = False) -> "History":
        """Return the first event and the last turns of a long session: see `read_ends`."""
        from cueline.client.history import read_ends

        return await read_ends(self.log, await self.find(session), outputs=outputs)

    @at_server
    async def transcript(self, session: str) -> "Page[TranscriptLine]":
        """Return the conversation and the calls of a session, line by line."""
        from cueline.projections.transcript import transcript

        stream = await self.find(session)
        async with read_models(self.log, self.notice) as models:
            return models.page(transcript(models.db, stream))

    async def export(self, session: str) -> "Export":
        """Return a session as one document.

        Raises:
            CorruptEventError: an event cannot be read; `history` has the events before it.
        """
        from cueline.client.export import export_of

        history = await self.history(session)
        if history.damage is not None:
            raise history.damage
        return export_of(history)

    async def workflow_state(self, session: str) -> "WorkflowState":
        """Return the progress of the session of a workflow.

        Raises:
            RejectedError: the session follows no plan.
            CorruptEventError: an event cannot be read.
        """
        from cueline.client.workflow import workflow_state

        return workflow_state(await self.history(session))

    async def check(self, session: str, *, until: int | None = None) -> "Check":
        """Decide the steps of a session again, and compare (I10).

        Raises:
            RejectedError: the session has fewer versions than *until*.
            CorruptEventError: an event of the session was emptied.
        """
        from cueline.client.redecide import check_of

        history = await self.history(session, until=until)
        return check_of(history, cut=until is not None)

    async def file_diffs(self, session: str) -> "list[FileDiff]":
        """Return what the calls of a session changed in files, as far as it is recorded.

        Raises:
            CorruptEventError: an event of the session cannot be read, or was emptied.
        """
        from cueline.client.file_changes import file_diffs

        return await file_diffs(self.log, await self.history(session))

    async def diff(self, session: str, other: str) -> "SessionDiff":
        """Compare two sessions: what was said and called, files, and cost.

        Args:
            session: the first session.
            other: the session to compare it with, such as a fork of the first.

        Raises:
            CorruptEventError: an event of one of the two cannot be read, or was emptied.
        """
        from cueline.client.compare import SessionDiff, compared_files, compared_lines

        pair = (session, other)
        said = [(await self.transcript(each)).rows for each in pair]
        files = [await self.file_diffs(each) for each in pair]
        return SessionDiff(
            a=await self.show(session),
            b=await self.show(other),
            transcript=tuple(compared_lines(*said)),
            files=tuple(compared_files(*files)),
        )

    async def rerun_result(self, session: str) -> "RerunResult":
        """Compare a rerun, also an unfinished one, with the session that it runs again.

        Raises:
            RejectedError: the session is no rerun.
            CorruptEventError: one of the two cannot be read.
        """
        from cueline.client.rerun import rerun_result

        return await rerun_result(self.history, session)

    @at_server
    async def budget(self, session: str) -> "Budget":
        """Return the limits of a session, and how much of each is used."""
        from cueline.client.limits import budget_of_session

        return await budget_of_session(self.log, await self.history(session))

    async def start_request(self, session: str) -> "StartAsked":
        """Return the request that started a session, with the session's agent.

        Raises:
            CorruptEventError: the request cannot be read.
        """
        from cueline.actors.session_tree import read_start_request

        return await read_start_request(self.log.journal(), await self.find(session))

    async def session_ids(self) -> list[str]:
        """Return the ids of all sessions, the last changed first."""
        if self.log.server is not None:
            return [each.id for each in await self.sessions(limit=10_000)]
        async with read_models(self.log, self.notice) as models:
            return session_ids(models)

    async def find(self, name: str) -> str:
        """Return the stream of the session with this id, unique beginning of an id, or stream.

        Raises:
            UnknownSessionError: no session matches, or more than one; the message lists some.
            RejectedError: its content was removed; the message says by whom and why.
            ConfigError: *name* is no text.
        """
        if (server := self.log.server) is not None:
            return str(await server.call("find", {"session": name}))
        stream = await find_session(self.log, name, self.session_ids)
        await check_content(self.log, stream)
        return stream

    async def _stream(self, name: str | None) -> str | None:
        """Return the stream of a session by which rows are chosen: also of an emptied one."""
        if name is None or self.log.server is not None:
            return None if name is None else await self.find(name)
        return await find_session(self.log, name, self.session_ids)

    @at_server
    async def sessions(
        self,
        *,
        status: str | None = None,
        agent: str | None = None,
        labels: Mapping[str, str] | None = None,
        text: str | None = None,
        min_cost: float | None = None,
        since: datetime | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> "Page[SessionRow]":
        """Return the sessions that match, the last changed first.

        Args:
            status: `created`, `running`, `idle`, `waiting`, `paused`, `stopping`, `completed`,
            `failed` or `stopped`.
            agent: the name of the sessions' agent.
            labels: labels that each session has.
            text: a part of the id or the goal, in any case.
            min_cost: the least cost in US dollars.
            since: changed at this time or later.
            limit: the maximum number of rows.
            cursor: the `next` of a page, for the rows after it.

        Raises:
            ConfigError: there is no such status or cursor, or the limit is less than 1.
        """
        from cueline.client.rows import STATUSES, check_status, with_drivers
        from cueline.projections.session import list_sessions

        which: dict[str, Any] = {"status": status, "agent": agent, "labels": labels}
        which |= {"text": text, "min_cost": min_cost, "since": since, "place": read_cursor(cursor)}
        check_status(status, STATUSES)
        check_limit(limit)
        async with read_models(self.log, self.notice) as models:
            fitting = list_sessions(models.db, **which, limit=limit + 1)
        rows = await with_drivers(self.log, fitting)
        return models.page(rows, limit, cursor_of)
