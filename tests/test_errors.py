"""The errors: one tree, drawn as it is, and fit to cross a process border."""

import inspect
import pickle
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import get_type_hints

import pytest

from cueline import errors

EXAMPLES = {
    str: "session-7f3a",
    int: 3,
    float: 1.5,
    bool: True,
    bytes: b"7f3a",
    datetime: datetime(2026, 1, 1, tzinfo=UTC),
    timedelta: timedelta(seconds=1),
    tuple: ("first", "second"),
    dict: {"input": 3},
}


def tree(root: type[Exception]) -> Iterator[type[Exception]]:
    yield root
    for child in root.__subclasses__():
        if child.__module__.startswith(errors.__name__):
            yield from tree(child)


def example_of(annotation) -> object:
    """`int | None` is shown by an `int`, `tuple[str, ...]` by a tuple."""
    first = annotation.__args__[0] if "|" in str(annotation) else annotation
    return EXAMPLES[getattr(first, "__origin__", first)]


def make(error: type[Exception]) -> Exception:
    if "__init__" in vars(error):
        _, *parameters = inspect.signature(error.__init__, eval_str=True).parameters.values()
        asked = [p.annotation for p in parameters if p.kind is p.POSITIONAL_OR_KEYWORD]
    else:
        hints = get_type_hints(error)
        asked = [hints[name] for name in error.names]
    return error(*map(example_of, asked))


def drawn() -> set[tuple[str, str]]:
    """Each error of the drawing with the one it hangs from: the nearest above, further left."""
    pairs, above = set(), [(-1, "Exception")]
    for line in errors.__doc__.splitlines():
        if found := re.match(r"([\s│├└─]*)(\w+Error)\b(?! \()", line):
            indent, name = len(found[1]), found[2]
            above = [(column, parent) for column, parent in above if column < indent]
            pairs.add((name, above[-1][1]))
            above.append((indent, name))
    return pairs


ALL = list(tree(errors.CuelineError))
each_error = pytest.mark.parametrize("error", ALL, ids=lambda error: error.__name__)


@pytest.mark.parametrize(
    ("stream", "version", "position", "place"),
    [
        ("session-default/1", 3, 7, "session-default/1@3 (position 7)"),
        ("session-default/1", 3, 0, "session-default/1@3"),
        ("?", 0, 7, "position 7"),
    ],
)
def test_a_damaged_row_is_named_by_what_is_known_of_it(stream, version, position, place):
    assert f"{place}: cut" == str(errors.CorruptEventError(stream, version, position, "cut"))


def test_the_drawing_is_the_tree():
    assert {(error.__name__, error.__base__.__name__) for error in ALL} == drawn()


def test_every_error_of_the_module_is_in_the_tree():
    defined = {
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, BaseException)
    }

    assert defined == set(ALL)


@each_error
def test_its_name_ends_in_error(error):
    assert error.__name__.endswith("Error")


@each_error
def test_it_says_whether_to_try_again(error):
    assert isinstance(error.retryable, bool)


@each_error
def test_it_says_in_its_docstring_what_happened(error):
    assert error.__doc__ != error.__base__.__doc__


@each_error
def test_it_survives_a_process_border(error):
    sent = make(error)

    received = pickle.loads(pickle.dumps(sent))

    assert (type(sent), vars(sent), str(sent)) == (type(received), vars(received), str(received))
