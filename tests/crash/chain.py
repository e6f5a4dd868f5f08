"""The shipped chains as they are recorded, with agents of the tests."""

import shutil
from importlib.resources import files
from tempfile import TemporaryDirectory

from cueline import Agent
from cueline.testing.crash import Outside
from cueline.testing.fakes import JournalingExecutor, tool_spec
from tests.crash import story
from tests.crash.delegation import SESSION, TreeModel, act, named

READ, PAY = tool_spec("read", "read_only"), tool_spec("pay")
TOOLS = {"plan": READ, "implement": PAY, "review": READ, "bugfix": PAY}
CHILDREN = tuple(f"{SESSION}.1.{index}" for index in range(4))


class Place(Outside):
    async def start(self, name, agent):
        return await super().start(name, agent, None, parameters={"goal": "ship it"})


def place_of(replies):
    """Return an outside on which the agents of a chain say *replies*, by their sessions."""
    return Place.new(TreeModel(replies), JournalingExecutor({"read": act, "pay": act}))


def shipped_chain(chain, **update):
    """Return the shipped *chain*, whose agents have one tool each."""
    with TemporaryDirectory() as folder:
        for name in (chain, *TOOLS):
            shutil.copy(str(files("cueline") / f"agents/chains/{name}.toml"), folder)
        spec = Agent.from_file(f"{folder}/{chain}.toml").spec()
    agents = {
        name: named(name, TOOLS[name]).model_copy(update={"output": agent.output})
        for name, agent in spec.agents.items()
    }
    return spec.model_copy(update={"agents": agents, "workspace": None, **update})


def person(tree):
    """Return who answers the questions of the sessions of *tree*, and allows what they ask."""

    async def answer(place, _session):
        asked = [await story.answer(place, each) for each in tree if await place.facts(each)]
        return any(asked)

    return answer
