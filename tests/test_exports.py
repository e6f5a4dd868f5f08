"""The public names of the package."""

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
