"""Reads one log; each method imports the modules that it needs, so that `list` is quick."""

from collections.abc import AsyncIterator
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cueline.client.argument_check import check_limit, cursor_of, read_cursor, read_position
from cueline.client.open_read_models import (
    Page,
    read_models,
)
from cueline.client.remote import at_server
from cueline.client.session_questions import SessionQuestions
from cueline.events.stream import shown

if TYPE_CHECKING:
    from cueline.client.policies import PolicyBacktest
    from cueline.client.rows import Costs, GroupBy, SqlRows
    from cueline.client.runs import BlueprintRow, RunnerRow
    from cueline.client.sandboxes import PoolStatus
    from cueline.client.status import FleetStatus, LogStatus
    from cueline.client.verify import Verified
    from cueline.events.agent import Policy
    from cueline.projections.approval import PendingRow
    from cueline.projections.audit import AuditRow
    from cueline.projections.breaker import BreakerRow
    from cueline.projections.session import RunRow


class Reader(SessionQuestions):
    """An open log for questions; see `SessionQuestions` for those about sessions."""

    @at_server
    async def runs(
        self,
        *,
        status: str | None = None,
        blueprint: str | None = None,
        runner: str | None = None,
        limit: int = 50,
        cursor: str | None = None,
    ) -> "Page[RunRow]":
        """Return the runs that match, the last changed first.

        Args:
            status: `queued`, `claimed`, or a status of a session.
            blueprint: the name that they were started by.
            runner: the incarnation that has claimed them.
            limit: the maximum number of rows.
            cursor: the `next` of a page, for the rows after it.

        Raises:
            ConfigError: there is no such status or cursor, or the limit is less than 1.
        """
        from cueline.client.rows import RUN_STATUSES, check_status
        from cueline.projections.session import list_runs

        check_status(status, RUN_STATUSES)
        check_limit(limit)
        which: dict[str, Any] = {"status": status, "blueprint": blueprint, "runner": runner}
        place = read_cursor(cursor)
        async with read_models(self.log, self.notice) as models:
            found = list_runs(models.db, **which, place=place, limit=limit + 1)
        return models.page(found, limit, cursor_of)

    @at_server
    async def blueprints(self) -> "list[BlueprintRow]":
        """Return all blueprints that runners offer or have offered, by name."""
        from cueline.client.runs import blueprints_of

        return await blueprints_of(self.log)

    @at_server
    async def runners(self) -> "list[RunnerRow]":
        """Return the registered runners with their blueprints."""
        from cueline.client.runs import runners_of

        return await runners_of(self.log)

    @at_server
    async def pending(self) -> "Page[PendingRow]":
        """Return the questions that wait for a person, the most urgent first."""
        from cueline.projections.approval import pending_approvals

        async with read_models(self.log, self.notice) as models:
            return models.page(pending_approvals(models.db))

    @at_server
    async def costs(
        self,
        by: "GroupBy" = "session",
        *,
        session: str | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        limit: int = 50,
    ) -> "Costs":
        """Return the costs, the highest first, and their total.

        Args:
            by: the group of each row; a `tree` is a session with all its descendants.
            session: only of this session.
            since: the first day, in UTC, as `2026-01-31`.
            until: the last day.
            limit: the maximum number of rows.

        Raises:
            ConfigError: *by* is no group, a day does not exist, or the limit is less than 1.
        """
        from cueline.client.rows import check_by, costs_of, day_of

        check_by(by)
        check_limit(limit)
        days = {"since": day_of("since", since), "until": day_of("until", until)}
        stream = await self._stream(session)
        async with read_models(self.log, self.notice) as models:
            return costs_of(models, by, limit, stream=stream, **days)

    @at_server
    async def audit(
        self,
        *,
        session: str | None = None,
        type: str | None = None,  # noqa: A002 - the word of the log
        tool: str | None = None,
        actor: str | None = None,
        correlation: str | None = None,
        text: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        after: int | None = None,
        limit: int = 1000,
        cursor: str | None = None,
    ) -> "Page[AuditRow]":
        """Return the newest events that match all of this, in the order of the log.

        Args:
            session: the session of the events.
            type: the type of the events.
            tool: the tool of the events.
            actor: `user`, `agent`, `runner` or `system`, or one of them by name: `user:ada`.
            correlation: the id of the topmost session of a tree: all its events.
            text: words that all are in the text of the event; `src/*` is the beginning of a word.
            since: recorded at this time or later.
            until: recorded at this time or earlier.
            after: a position: the first events after it, and not the newest.
            limit: the maximum number of rows.
            cursor: the `next` of a page, for the events before it.

        Raises:
            ConfigError: no event has this *type*, no actor is of this kind, *text* has no word,
            there is no such cursor, or the limit is less than 1.
            UnknownSessionError: there is no such session.
        """
        from cueline.client.rows import check_actor, check_type
        from cueline.projections.audit import audit

        check_type(type)
        check_actor(actor)
        check_limit(limit)
        which: dict[str, Any] = {"since": since, "until": until, "before": read_position(cursor)}
        which |= {"session": await self._stream(session), "type": type, "tool": tool}
        top = await self._stream(correlation)
        which |= {"actor": actor, "correlation": top and shown(top), "text": text, "after": after}
        async with read_models(self.log, self.notice) as models:
            found = audit(models.db, limit=limit + 1, **which)
        more = len(found) > limit
        if after is not None:
            return Page(tuple(found[:limit]), more, models.damage)
        last = str(found[-limit].position) if more else None
        return Page(tuple(found[-limit:]), more, models.damage, last)

    @at_server
    async def sql(self, query: str, *, limit: int = 1000) -> "SqlRows":
        """Return the answer to one SELECT on the tables and views of the read models.

        Args:
            query: the SELECT; it can only read, and for 10 s. A second column `id` is `id_2`.
            limit: the maximum number of rows.

        Raises:
            ConfigError: it is no query, it does more than to read, or it takes too long.
            ForbiddenError: the person reaches the sessions of one tenant.
        """
        from cueline.client.rows import SqlRows, different

        check_limit(limit)
        self.log.check_whole()
        async with read_models(self.log, self.notice) as models:
            columns, rows = await models.views.query(query, limit + 1)
            found = tuple(rows[:limit])
            return SqlRows(different(columns), found, len(rows) > limit, models.damage)

    @at_server
    async def breakers(self) -> "Page[BreakerRow]":
        """Return the circuit breakers, closed ones last."""
        from cueline.projections.breaker import list_breakers

        async with read_models(self.log, self.notice) as models:
            return models.page(list_breakers(models.db, self.log.clock.now()))

    @at_server
    async def verify(self) -> "Verified":
        """Check every event of the log, and the data beside the events."""
        from cueline.client.verify import verify_log

        return await verify_log(self.log)

    @at_server
    async def status(self) -> "LogStatus":
        """Return the processes that run the sessions of the log.

        Raises:
            CorruptEventError: the log is damaged, so that sessions may be missing.
        """
        from cueline.client.status import status_of

        return await status_of(self.log, notice=self.notice)

    @at_server
    async def fleet(self) -> "FleetStatus":
        """Return the hosts and runners: desired numbers, existing workers, waiting work.

        Raises:
            CorruptEventError: the log is damaged, so that sessions may be missing.
        """
        from cueline.client.status import fleet_of

        return await fleet_of(self.log, notice=self.notice)

    @at_server
    async def sandboxes(self, *, all: bool = False) -> "PoolStatus":  # noqa: A002 - as `--all`
        """Return the sandboxes of sessions, their slots, and the sessions that wait for one.

        The log is read; no back-end is asked.

        Args:
            all: also those that are deleted, or gone at the back-end.

        Raises:
            CorruptEventError: the log is damaged.
        """
        from cueline.client.sandboxes import pool_of

        return await pool_of(self.log, with_deleted=all, notice=self.notice)

    async def backtest(
        self, policy: "str | Path | Policy", *, since: datetime | None = None
    ) -> "PolicyBacktest":
        """Judge the recorded calls by another policy, and change nothing.

        Args:
            policy: the policy, or the file with it: see `check_policy`.
            since: only calls from this time on.

        Raises:
            ConfigError: the policy has a fault; the message names the first.
        """
        from cueline.client.policies import backtest_policy

        return await backtest_policy(self.log, policy, since=since)

    async def changes(self) -> AsyncIterator[int]:
        """Yield the position of the log, now and each time that it has grown, without end."""
        while True:
            position = await self.log.store.last_position()
            yield position
            await anext(self.log.store.follow(position))

    async def catch_up(self) -> None:
        """Bring the read models up to date, without a time limit."""
        async with read_models(self.log, self.notice):
            pass
