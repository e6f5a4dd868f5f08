"""What a person types to change the arguments of a call."""

import pytest

from cueline.console.question import edit_arguments
from cueline.errors import ConfigError


@pytest.mark.parametrize(
    ("changes", "result"),
    [
        ((), {"path": "a.txt", "n": 1}),
        (("path=b.txt",), {"path": "b.txt", "n": 1}),
        (("n=2", 'more=["x"]'), {"path": "a.txt", "n": 2, "more": ["x"]}),
        ((" path = b=c",), {"path": " b=c", "n": 1}),
        (("path=",), {"path": "", "n": 1}),
        ((' {"n": 3}',), {"n": 3}),
        (('{"n": 3}', "path=b"), {"n": 3, "path": "b"}),
    ],
)
def test_an_argument_is_changed_by_its_name_and_all_by_an_object(changes, result):
    assert result == edit_arguments({"path": "a.txt", "n": 1}, changes)


@pytest.mark.parametrize("change", ["path", "=b", " =b", "{path", '{"n": NaN}'])
def test_what_is_neither_is_refused(change):
    with pytest.raises(ConfigError, match="the edit: "):
        edit_arguments({}, [change])
