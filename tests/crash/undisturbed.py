"""A session that ended without any crash: where it could have been killed, and what it was told."""

import asyncio

import pytest

from cueline.testing.crash import CrashPoint
from tests.crash import story


def spread(name, values, ids=None):
    """Parametrize by every third of *values*; by the others too, in `make test-long`."""
    marks = [[pytest.mark.long] if n % 3 else [] for n in range(len(values))]
    ids = ids or [str(value) for value in values]
    return pytest.mark.parametrize(
        name,
        [
            pytest.param(value, marks=marks, id=id_)
            for value, marks, id_ in zip(values, marks, ids, strict=True)
        ],
    )


class Undisturbed:
    """The story of *make*, started as *asked* and driven by *drive* to its end."""

    def __init__(self, make=story.outside, drive=story.drive, **asked):
        self._make, self._drive, self._asked = make, drive, asked
        self.place, world = asyncio.run(story.undisturbed(make, drive, **asked))
        self.told = asyncio.run(self.place.transcript(story.SESSION))
        self.events = asyncio.run(self.place.store.last_position())
        self.points = world.life.points

    @property
    def at_every_point(self):
        names = [f"{n} {point}".replace(" ", "-") for n, point in enumerate(self.points)]
        return spread("point", range(len(self.points)), names)

    @property
    def after_every_event(self):
        return spread("position", range(1, self.events + 1))

    async def killed(self, point):
        """Return an outside on which the session was killed at *point*, and went on."""
        place, agent = self._make()
        await place.start("story", agent, **self._asked)
        died = await self._drive(place, CrashPoint(point))
        assert died.life.dead
        return await self._gone_on(place)

    async def cut(self, position, said):
        """Return an outside with the log up to *position*, on which the session went on."""
        return await self._gone_on(await story.cut(self.place, position, said, self._make))

    async def _gone_on(self, place):
        survivor = await self._drive(place)
        assert [] == survivor.troubles
        return place

    async def check_told(self, place, unknown=None):
        """Check that the model was told the same on *place*, but for what nobody knows."""
        unknown = set(await story.doubts(place)) if unknown is None else unknown
        told = await place.transcript(story.SESSION)
        assert story.masked(self.told, unknown) == story.masked(told, unknown)
