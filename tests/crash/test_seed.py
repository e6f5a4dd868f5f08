"""A seed is the same course in every process, so that what it found can be found again."""

import os
import subprocess
import sys

COURSES = """
import asyncio
from random import Random

from tests.crash.fleet import Fleet
from tests.crash.tree import Tree
from tests.crash.unsteady import Troubled
from tests.torture.simulated import SCHEDULES


async def show(journal):
    async for recorded, fact in journal.read_all(0):
        print(recorded.position, recorded.stream, recorded.recorded_us, fact)


async def suffer(kind, seed):
    async with kind(seed) as tree:
        await tree.start()
        await tree.suffer()
        await show(tree.outside.journal)


async def die(seed):
    tree = Tree(seed, sessions=32)
    await tree.start()
    await tree.run()
    await show(tree.place.journal)


for seed in (2, 5, 30):
    asyncio.run(suffer(Troubled, seed))
    asyncio.run(suffer(Fleet, seed))
asyncio.run(die(12))
for kind, schedule in SCHEDULES.items():
    if kind not in {"tree", "fleet"}:  # these two draw a seed only, and are above
        chance = Random(kind)
        schedule(chance)
        print(kind, chance.random())
"""


# Strings and tasks have other hashes in each process, and so another order in a set.
def test_a_seed_is_the_same_course_in_every_process():
    first, second = course("1"), course("2")

    assert len(first) > 300
    assert first == second


def course(hashes):
    """Return what happens in a process in which strings have these *hashes*."""
    seeded = {**os.environ, "PYTHONHASHSEED": hashes}
    command = [sys.executable, "-c", COURSES]
    return subprocess.check_output(command, env=seeded, text=True, timeout=120).splitlines()
