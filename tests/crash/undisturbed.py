"""A session that ended without any crash: where it could have been killed, and what it was told."""

import asyncio

import pytest

from tests.crash import story


class Undisturbed:
    """The story of *make*, driven by *drive* to its end."""

    def __init__(self, make=story.outside, drive=story.drive):
        self.place, world = asyncio.run(story.undisturbed(make, drive))
        self.told = asyncio.run(self.place.transcript(story.SESSION))
        self.events = asyncio.run(self.place.store.last_position())
        self.points = world.life.points

    @property
    def at_every_point(self):
        names = [f"{n} {point}".replace(" ", "-") for n, point in enumerate(self.points)]
        return pytest.mark.parametrize("point", range(len(self.points)), ids=names)

    @property
    def after_every_event(self):
        return pytest.mark.parametrize("position", range(1, self.events + 1))

    async def check_told(self, place, unknown=None):
        """Check that the model was told the same on *place*, but for what nobody knows."""
        unknown = set(await story.doubts(place)) if unknown is None else unknown
        told = await place.transcript(story.SESSION)
        assert story.masked(self.told, unknown) == story.masked(told, unknown)
