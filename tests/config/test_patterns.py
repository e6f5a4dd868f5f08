"""Each text that a file may say in one form only: a wrong one is named, with the form."""

from collections.abc import Iterator
from typing import Any, get_args

import pytest
from pydantic import BaseModel

from cueline.agents.agent import Agent
from cueline.agents.agent_file import agent_in
from cueline.config.problem import MEANINGS
from cueline.config.settings import Settings
from cueline.errors import ConfigError


def patterns_of(kind: Any, seen: set[Any]) -> Iterator[str]:
    """Yield the patterns of the texts in *kind*."""
    for each in getattr(kind, "__metadata__", ()):
        yield from filter(None, [getattr(each, "pattern", None)])
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in seen:
        seen.add(kind)
        for field in kind.model_fields.values():
            for each in field.metadata:
                yield from filter(None, [getattr(each, "pattern", None)])
            yield from patterns_of(field.annotation, seen)
    for each in get_args(kind):
        yield from patterns_of(each, seen)


PATTERNS = sorted({each for kind in (Agent, Settings) for each in patterns_of(kind, set())})


@pytest.mark.parametrize("pattern", PATTERNS)
def test_each_form_of_a_text_has_a_meaning(pattern):
    assert pattern in MEANINGS


def test_there_are_some():
    assert len(PATTERNS) > 2


def test_a_volume_with_a_path_is_named(tmp_path):
    table = {"name": "a", "sandbox": {"backend": "local", "volume": "../x"}}

    with pytest.raises(ConfigError, match=r"'sandbox.volume'.*'\.\./x' is not the name of a vol"):
        agent_in(table, tmp_path / "agent.toml")
