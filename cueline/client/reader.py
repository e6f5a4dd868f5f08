"""The questions that a person or a program may ask about one log; nothing is changed."""

from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from contextlib import asynccontextmanager
from datetime import date, datetime
from pathlib import Path

from cueline.client import audit, breakers, costs, pending, sessions
from cueline.client.audit import AuditRow
from cueline.client.breakers import BreakerRow
from cueline.client.costs import Costs, GroupBy
from cueline.client.export import Export, export_of
from cueline.client.follow import Left, follow
from cueline.client.history import History, read_ends, read_history
from cueline.client.limits import Budget, budget_of_session
from cueline.client.names import find_session, session_ids
from cueline.client.pending import PendingRow
from cueline.client.policies import PolicyBacktest, backtest_policy, check_policy
from cueline.client.reading import Notice, Page, print_notice, read_models
from cueline.client.redecide import Check, check_of
from cueline.client.sessions import SessionRow
from cueline.client.show import SessionDetails, session_details
from cueline.client.status import LogStatus, status_of
from cueline.client.value import check_is_text
from cueline.client.verify import Verified, verify_log
from cueline.config.config_file import DEFAULT_LOG
from cueline.errors import ConfigError
from cueline.events.agent import Policy
from cueline.events.log_url import LogName
from cueline.events.session import SessionEvent
from cueline.events.store import RecordedEvent
from cueline.projections.transcript import Line, transcript
from cueline.wiring import OpenLog, open_log


class Reader:
    """An open log, to be asked.

    A session is named by its id, by the beginning of it if no other session begins so,
    or by its stream. Each question raises `LogUnavailableError` if the log cannot be read.
    """

    def __init__(self, log: OpenLog, notice: Notice = print_notice) -> None:
        self.log = log
        self._notice = notice

    async def sessions(
        self,
        *,
        status: str | None = None,
        agent: str | None = None,
        labels: Mapping[str, str] | None = None,
        since: datetime | None = None,
        limit: int = sessions.LIMIT,
    ) -> Page[SessionRow]:
        """Return the sessions that fit, the last changed first: see `list_sessions`."""
        return await sessions.list_sessions(
            self.log,
            status=status,
            agent=agent,
            labels=labels,
            since=since,
            limit=limit,
            notice=self._notice,
        )

    async def pending(self) -> Page[PendingRow]:
        """Return what waits for a person's decision, the most urgent first."""
        return await pending.list_pending(self.log, notice=self._notice)

    async def costs(
        self,
        by: GroupBy = "session",
        *,
        session: str | None = None,
        since: str | date | None = None,
        until: str | date | None = None,
        limit: int = costs.LIMIT,
    ) -> Costs:
        """Return what was spent: see `sum_costs`.

        Raises:
            UnknownSessionError: there is no such *session*.
            ConfigError: *by* is another word, or a day is none.
        """
        stream = await self._stream(session)
        return await costs.sum_costs(
            self.log, by, stream=stream, since=since, until=until, limit=limit, notice=self._notice
        )

    async def audit(
        self,
        *,
        session: str | None = None,
        type: str | None = None,  # noqa: A002 - the word of the log
        tool: str | None = None,
        actor: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int = audit.LIMIT,
    ) -> Page[AuditRow]:
        """Return the newest events that fit, in the order of the log: see `list_events`.

        Raises:
            UnknownSessionError: there is no such *session*.
            ConfigError: no event has this *type*.
        """
        stream = await self._stream(session)
        return await audit.list_events(
            self.log,
            stream=stream,
            type=type,
            tool=tool,
            actor=actor,
            since=since,
            until=until,
            limit=limit,
            notice=self._notice,
        )

    async def breakers(self) -> Page[BreakerRow]:
        """Return the circuit breakers, those that are not closed first."""
        return await breakers.list_breakers(self.log, notice=self._notice)

    async def show(self, session: str) -> SessionDetails:
        """Return what there is to know of one session without reading its stream.

        Raises:
            UnknownSessionError: there is no such session; the message names some like it.
        """
        stream = await self.find(session)
        return await session_details(self.log, stream, notice=self._notice)

    async def history(
        self,
        session: str,
        *,
        until: int | None = None,
        last: int | None = None,
        outputs: bool = False,
    ) -> History:
        """Return what has happened in a session: see `read_history`.

        Raises:
            UnknownSessionError: there is no such session; the message names some like it.
            RejectedError: the session has fewer versions than *until*.
        """
        stream = await self.find(session)
        return await read_history(self.log, stream, until=until, last=last, outputs=outputs)

    async def excerpt(self, session: str, *, outputs: bool = False) -> History:
        """Return the first event and the last turns of a long session: see `read_ends`.

        Raises:
            UnknownSessionError: there is no such session; the message names some like it.
        """
        return await read_ends(self.log, await self.find(session), outputs=outputs)

    def follow(
        self, history: History, left: Left
    ) -> AsyncGenerator[tuple[RecordedEvent, SessionEvent | None]]:
        """Yield the events after a *history* as they come, until the end: see `follow`."""
        return follow(self.log, history, left)

    async def transcript(self, session: str) -> Page[Line]:
        """Return what was said and done in a session, line by line, from its read model.

        Raises:
            UnknownSessionError: there is no such session; the message names some like it.
        """
        stream = await self.find(session)
        async with read_models(self.log, self._notice) as models:
            return models.page(transcript(models.db, stream))

    async def export(self, session: str) -> Export:
        """Return a session as one document.

        Raises:
            UnknownSessionError: there is no such session; the message names some like it.
            CorruptEventError: it cannot be read whole; `history` has what is before that.
        """
        history = await self.history(session)
        if history.damage is not None:
            raise history.damage
        return export_of(history)

    async def check(self, session: str, *, until: int | None = None) -> Check:
        """Decide the steps of a session again, and compare (I10).

        Raises:
            UnknownSessionError: there is no such session; the message names some like it.
            RejectedError: the session has fewer versions than *until*.
            CorruptEventError: something of it was emptied.
        """
        history = await self.history(session, until=until)
        return check_of(history, cut=until is not None)

    async def budget(self, session: str) -> Budget:
        """Return what a session may use, and how much of it is used.

        Raises:
            UnknownSessionError: there is no such session; the message names some like it.
        """
        return await budget_of_session(self.log, await self.history(session))

    async def verify(self) -> Verified:
        """Check every event of the log, and what is kept beside the events."""
        return await verify_log(self.log)

    async def status(self) -> LogStatus:
        """Return what drives the sessions of the log, and where."""
        return await status_of(self.log, notice=self._notice)

    async def backtest(
        self, policy: str | Path | Policy, *, since: datetime | None = None
    ) -> PolicyBacktest:
        """Judge the calls of the past by another policy, and change nothing.

        Args:
            policy: it, or the file with it: see `check_policy`.
            since: only calls from then on.

        Raises:
            ConfigError: the policy has a fault; the message names the first.
        """
        if not isinstance(policy, Policy):
            checked = check_policy(policy)
            if checked.problems:
                raise ConfigError(checked.file, str(checked.problems[0]))
            policy = checked.policy
        return await backtest_policy(self.log, policy, since=since)

    async def changes(self) -> AsyncIterator[int]:
        """Yield the position of the log: now, and each time that it has grown; for ever."""
        while True:
            position = await self.log.store.last_position()
            yield position
            await anext(self.log.store.follow(position))

    async def catch_up(self) -> None:
        """Bring the read models up to date, however long that takes."""
        async with read_models(self.log, self._notice):
            pass

    async def session_ids(self) -> list[str]:
        """Return the ids of all sessions, the last changed first."""
        async with read_models(self.log, self._notice) as models:
            return session_ids(models)

    async def find(self, name: str) -> str:
        """Return the stream of the session that *name* stands for.

        Raises:
            UnknownSessionError: there is none, or more than one; the message names some.
            ConfigError: *name* is no text.
        """
        check_is_text("session", name)
        return await find_session(self.log.store, name, self.session_ids, str(self.log.url))

    async def _stream(self, name: str | None) -> str | None:
        return None if name is None else await self.find(name)


@asynccontextmanager
async def open_reader(
    log: LogName = DEFAULT_LOG, *, must_exist: bool = True, notice: Notice = print_notice
) -> AsyncIterator[Reader]:
    """Open the log of that URL, or at that path, to be read; nothing in it is changed.

    Args:
        log: its URL or path.
        must_exist: False: a log that is not there is an empty one.
        notice: told what the user should know, as that reading takes long.

    Raises:
        ConfigError: no log is known by such a URL.
        LogUnavailableError: there is none, or it cannot be read.
        LogFormatError: another format wrote it.
    """
    async with open_log(log, must_exist=must_exist, read_only=True, notice=notice) as opened:
        yield Reader(opened, notice)
