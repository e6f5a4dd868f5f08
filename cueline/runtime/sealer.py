"""Seals a log again and again, beside other work of a process."""

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import date, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Final

from cueline.actors.background_task import Step, Trouble, start_loops
from cueline.config.environment import HERE
from cueline.errors import CuelineError
from cueline.events.seal import SEAL_STREAM
from cueline.runtime.open_log import OpenLog
from cueline.runtime.seal import last_seal, seal_log

if TYPE_CHECKING:
    from cueline.config.settings import SealSettings

TICK_SECONDS: Final = 1.0
_ACTOR: Final = "system:sealer"


class Sealer:
    """Seals a log when enough events are new, or when an event was new for long enough.

    Several processes may do so: whichever appends first makes the seal, and the others count
    from it. Of the notes that it writes outside of the log, it keeps the newest of each day:
    each seal is an event, which the next note covers.
    """

    def __init__(self, log: OpenLog, settings: "SealSettings") -> None:
        self._log, self._settings = log, settings
        self._seen = 0
        """The last position at the last look."""
        self._version = -1
        """The version of the stream of seals at that time."""
        self._sealed = 0
        """The position up to which no event is new."""
        self._since: datetime | None = None
        """The first look that found an event that is not sealed."""
        self._note: tuple[date, Path] | None = None
        """The last note of this process, and its day."""

    async def step(self) -> None:
        """Wait for a second, look at the log, and seal it if it is time.

        Raises:
            CuelineError: it cannot be sealed; the next attempt comes after the usual time.
        """
        clock = self._log.clock
        await clock.sleep(TICK_SECONDS)
        try:
            if await self._is_due():
                await self._seal()
        except CuelineError:
            # An attempt can read the whole log.
            await clock.sleep(self._settings.every_seconds)
            raise

    async def _is_due(self) -> bool:
        position = await self._log.store.last_position()
        if position != self._seen:
            self._seen = position
            version = (await self._log.store.head(SEAL_STREAM)).version
            if version != self._version:
                last = await last_seal(self._log)
                self._version, self._sealed = version, last.covered if last else 0
                self._since = None
        if position <= self._sealed:
            return False
        now = self._log.clock.now()
        self._since = self._since or now
        waited = (now - self._since).total_seconds()
        return (
            position - self._sealed >= self._settings.every_events
            or waited >= self._settings.every_seconds
        )

    async def _seal(self) -> None:
        from cueline.providers.seal_key import seal_key  # noqa: PLC0415 - 50 ms

        settings = self._settings
        key = None if settings.key is None else Path(settings.key)
        folder = None if settings.folder is None else Path(settings.folder)
        made = await seal_log(self._log, seal_key(HERE, key), folder, by=_ACTOR)
        day, file = self._log.clock.now().date(), Path(made.file)
        if self._note is not None and self._note[0] == day and self._note[1] != file:
            with suppress(OSError):  # for example, a place that forbids it
                self._note[1].unlink()
        self._note = day, file


def seal_steps(log: OpenLog) -> dict[str, Step]:
    """Return the loop that seals *log*, by its name; none if its settings say so."""
    if log.seal is None or not log.seal.every_seconds or log.server is not None:
        return {}
    return {"sealing the log": Sealer(log, log.seal).step}


@contextmanager
def sealing(log: OpenLog, on_trouble: Trouble) -> Iterator[None]:
    """Seal *log* by itself until the block ends, if its settings say so."""
    loops = start_loops(seal_steps(log), clock=log.clock, on_trouble=on_trouble)
    try:
        yield
    finally:
        for loop in loops:
            loop.cancel()
