"""The questions about one session; each method imports what it needs."""

from typing import TYPE_CHECKING

from cueline.client.names import find_session, session_ids
from cueline.client.reading import Notice, Page, print_notice, read_models
from cueline.errors import ConfigError
from cueline.wiring import OpenLog

if TYPE_CHECKING:
    from cueline.client.export import Export
    from cueline.client.history import History
    from cueline.client.limits import Budget
    from cueline.client.redecide import Check
    from cueline.client.rerun import RerunResult
    from cueline.client.show import SessionDetails
    from cueline.client.workflow_state import WorkflowState
    from cueline.projections.transcript import TranscriptLine


class SessionReads:
    """The questions about one session of an open log."""

    def __init__(self, log: OpenLog, notice: Notice = print_notice) -> None:
        self.log = log
        self.notice = notice

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
        """Return how far the session of a workflow is.

        Raises:
            RejectedError: it follows no plan.
            CorruptEventError: an event cannot be read.
        """
        from cueline.client.workflow_state import workflow_state

        return workflow_state(await self.history(session))

    async def check(self, session: str, *, until: int | None = None) -> "Check":
        """Decide the steps of a session again, and compare (I10).

        Raises:
            RejectedError: the session has fewer versions than *until*.
            CorruptEventError: an event of it was emptied.
        """
        from cueline.client.redecide import check_of

        history = await self.history(session, until=until)
        return check_of(history, cut=until is not None)

    async def rerun_result(self, session: str) -> "RerunResult":
        """Compare a rerun, as far as it has come, with the session that it runs again.

        Raises:
            RejectedError: the session is no rerun.
            CorruptEventError: one of the two cannot be read.
        """
        from cueline.client.rerun import rerun_result

        return await rerun_result(self, session)

    async def budget(self, session: str) -> "Budget":
        """Return the limits of a session, and how much of each is used."""
        from cueline.client.limits import budget_of_session

        return await budget_of_session(self.log, await self.history(session))

    async def session_ids(self) -> list[str]:
        """Return the ids of all sessions, the last changed first."""
        async with read_models(self.log, self.notice) as models:
            return session_ids(models)

    async def find(self, name: str) -> str:
        """Return the stream of the session with this id, unique beginning of an id, or stream.

        Raises:
            UnknownSessionError: there is none, or more than one; the message names some.
            ConfigError: *name* is no text.
        """
        if not isinstance(name, str):
            raise ConfigError("session", f"{name!r} is no text; an id is text, such as '7f3a'")
        return await find_session(self.log.store, name, self.session_ids, str(self.log.url))

    async def _stream(self, name: str | None) -> str | None:
        return None if name is None else await self.find(name)
