"""What equal agents share, and how long it is kept."""

import asyncio

import pytest
from pydantic import SecretStr

from cueline.actors.agent_cache import UNUSED, AgentCache
from cueline.clock import SystemClock
from cueline.errors import ConfigError
from cueline.events.codec import Codec
from cueline.events.journal import Journal
from cueline.events.sanitize import Redactor
from cueline.stores import MemoryStore
from cueline.testing.fakes import TurnModel, agent_spec


def cache_of(make, keys=()):
    clock = SystemClock()

    def journal(_agent):
        return Journal(MemoryStore(clock), Codec(Redactor(map(SecretStr, keys))), clock.now)

    return AgentCache(journal, make)


def outfits_of(made):
    def make(_agent):
        made.append(TurnModel([]))
        return made[-1]

    return cache_of(make)


async def test_equal_agents_share_one_model():
    made = []
    outfits = outfits_of(made)

    one, other = outfits.take(agent_spec(name="a")), outfits.take(agent_spec(name="a"))

    assert one is other
    assert one.model(0)[0] is one.model(0)[0]


# 002-024: a key that was replaced counts for the next call, and is a secret from then on.
async def test_a_model_with_another_key_brings_a_redactor_that_knows_it():
    keys, models = ["former key"], {}
    cache = cache_of(lambda _: models.setdefault(keys[-1], TurnModel([])), keys)
    loaded = cache.take(agent_spec(name="a"))
    former = loaded.model(0)[1]

    keys.append("replaced key")
    model = loaded.model(0)[1]

    assert former is not model
    assert ("[redacted]", True) == loaded.redactor.redact("replaced key")
    await cache.close()
    assert former.closed
    assert model.closed


# 002-024: so is a key that came after the agent was loaded.
def test_a_key_that_is_stored_after_the_first_call_is_a_secret():
    keys = []

    def make(_):
        if not keys:
            raise ConfigError("KEY", "is not set")
        return TurnModel([])

    cache = cache_of(make, keys)
    loaded = cache.take(agent_spec(name="a"))
    with pytest.raises(ConfigError):
        loaded.model(0)

    keys.append("the first key")
    loaded.model(0)

    assert ("[redacted]", True) == loaded.redactor.redact("the first key")


async def test_unused_models_are_closed_oldest_first():
    made = []
    outfits = outfits_of(made)
    for number in range(UNUSED + 1):
        outfit = outfits.take(agent_spec(name=f"a{number}"))
        assert outfit.model(0)
        await outfits.give_back(outfit)

    assert [True] + [False] * UNUSED == [model.closed for model in made]
    await outfits.close()
    assert all(model.closed for model in made)


@pytest.mark.parametrize("error", [ZeroDivisionError("a bug"), asyncio.CancelledError()])
async def test_an_error_while_closing_a_model_affects_no_other(error):
    class Unclosed(TurnModel):
        async def close(self):
            raise error

    left, models = [], iter([Unclosed([]), *(TurnModel([]) for _ in range(UNUSED))])
    outfits = cache_of(lambda _: next(models))
    for number in range(UNUSED + 1):
        outfit = outfits.take(agent_spec(name=f"a{number}"))
        left.append(outfit.model(0)[1])
        await outfits.give_back(outfit)

    await outfits.close()

    assert all(model.closed for model in left[1:])
