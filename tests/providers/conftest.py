"""What the tests of the providers share."""

import pytest

from cueline.actors.model import ModelRequest
from cueline.events.agent import AgentSpec


@pytest.fixture
def agent():
    def new(**fields):
        return AgentSpec(**{"name": "tester", "provider": "scripted", "model": "m", **fields})

    return new


@pytest.fixture
def request_for(agent):
    def new(turn=1, attempt=1, messages=(), **fields):
        return ModelRequest(
            session="session-default/1",
            effect=f"{turn}.m",
            turn=turn,
            attempt=attempt,
            agent=agent(**fields),
            messages=messages,
        )

    return new
