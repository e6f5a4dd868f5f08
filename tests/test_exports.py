"""The public names of the package (004-066)."""

from collections.abc import Iterator
from typing import get_args, get_type_hints

from pydantic import BaseModel

import cueline


def as_ruff_sorts(name: str) -> tuple[bool, bool, str]:
    """Constants, then classes, then functions."""
    return not name.isupper(), not name[0].isupper(), name


def test_the_public_names_are_sorted():
    assert sorted(cueline.__all__, key=as_ruff_sorts) == cueline.__all__


def test_every_public_name_is_there():
    assert [] == [name for name in cueline.__all__ if not hasattr(cueline, name)]


def test_a_prompt_completes_every_public_name():
    assert set(cueline.__all__) <= set(dir(cueline))


def test_there_are_few_public_names():
    assert len(cueline.__all__) <= 40


def shapes_in(kind: object, seen: set[object]) -> Iterator[str]:
    """Name the models that a value of *kind* is made of; an agent may have agents."""
    if isinstance(kind, type) and issubclass(kind, BaseModel) and kind not in seen:
        seen.add(kind)
        yield kind.__name__
        for field in kind.model_fields.values():
            yield from shapes_in(field.annotation, seen)
    for part in get_args(kind):
        yield from shapes_in(part, seen)


def test_all_that_an_agent_is_made_of_is_public():
    assert set(shapes_in(cueline.Agent, set())) <= set(cueline.__all__)


def test_what_a_session_tells_and_is_asked_can_be_named():
    told = get_type_hints(cueline.Session.events)["return"]

    assert cueline.SessionEvent is get_type_hints(get_args(told)[0])["event"]
    assert cueline.ApprovalRequested in get_args(get_type_hints(cueline.Session.approve)["request"])
    assert cueline.ApprovalRequested in get_args(cueline.SessionEvent)
