"""The script that changes the rules, on a tree of one rule and two tests."""

import shutil
from pathlib import Path

import pytest

from tests.mutations import CoverageMap, draw, judge, mutations, mutations_of

RULE = '''
LIMIT: int = 3


class Room:
    """Has room."""

    places: int = 2

    def left(self, taken: int = 1) -> bool:
        if taken < self.places and not self.closed:
            self.asked += 1
            return taken == 1
        raise ValueError(f"{taken + 1} are too many")


def nobody_calls_it():
    return LIMIT
'''
TESTS = """
import pytest

from cueline.deciders.room import Room


@pytest.fixture
def room():
    room = Room()
    room.closed, room.asked = False, 0
    return room


def test_the_first_has_room(room):
    assert room.left(1) is True


def test_the_third_has_none(room):
    with pytest.raises(ValueError):
        room.left(2)
"""


def test_only_what_runs_in_a_function_is_changed():
    found = mutations_of(RULE.encode(), "room.py")

    assert [
        ("Room.left boolean 1", "(taken < self.places or not self.closed)"),
        ("Room.left comparison 1", "(taken <= self.places)"),
        ("Room.left boolean 2", "(self.closed)"),
        ("Room.left removed 1", "pass"),
        ("Room.left constant 1", "(2)"),
        ("Room.left return 1", "return None"),
        ("Room.left comparison 2", "(taken != 1)"),
        ("Room.left constant 2", "(2)"),
        ("Room.left removed 2", "pass"),
        ("nobody_calls_it return 1", "return None"),
    ] == [(each.name, each.after) for each in found]


def test_a_change_is_made_where_it_is_and_nowhere_else():
    (change,) = [each for each in mutations_of(RULE.encode(), "a") if each.after == "(taken != 1)"]

    assert RULE.replace("taken == 1", "(taken != 1)") == change.apply(RULE.encode()).decode()


def tree_with(folder, *files):
    for file in files:
        (folder / file).parent.mkdir(parents=True)
        (folder / file).write_text(RULE)
    return folder


def test_a_moved_file_changes_no_draw(tmp_path):
    before = mutations(tree_with(tmp_path / "a", "cueline/deciders/room.py"))
    after = mutations(tree_with(tmp_path / "b", "cueline/actors/rooms/other.py"))

    assert [each.name for each in draw(before, seed=1, count=5)] == [
        each.name for each in draw(after, seed=1, count=5)
    ]
    assert draw(before, seed=1, count=5) != draw(before, seed=2, count=5)


def test_two_functions_of_one_name_are_told_apart(tmp_path):
    tree = tree_with(tmp_path, "cueline/deciders/a/room.py", "cueline/deciders/b/room.py")

    names = [each.name for each in mutations(tree)]

    assert len(names) == len(set(names))
    assert "cueline/deciders/a Room.left boolean 1" in names


@pytest.fixture
def tree(tmp_path, monkeypatch):
    """A tree whose tests notice some changes of its rule, and need few plugins."""
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")
    monkeypatch.setenv("PYTEST_PLUGINS", "xdist.plugin,pytest_cov.plugin")
    tree_with(tmp_path, "cueline/deciders/room.py")
    for folder in ("cueline", "cueline/deciders", "tests"):
        (tmp_path / folder).mkdir(exist_ok=True)
        (tmp_path / folder / "__init__.py").touch()
    (tmp_path / "tests" / "test_room.py").write_text(TESTS)
    shutil.copy(Path(__file__).with_name("mutations.py"), tmp_path / "tests")
    (tmp_path / "pytest.toml").write_text("[pytest]\n")
    return tmp_path


def test_what_a_test_notices_is_killed_and_the_rest_survives(tree):
    tests = CoverageMap(tree, rooms=("cueline/deciders",))
    tests.make(workers=0)
    by_name = {each.name: each for each in mutations(tree)}

    verdicts = {
        name: judge(by_name[name], tests, tree)
        for name in ("Room.left comparison 1", "Room.left removed 1", "nobody_calls_it return 1")
    }

    assert ["killed", "survived", "uncovered"] == list(verdicts.values())
    assert RULE == (tree / "cueline/deciders/room.py").read_text()
