"""`cueline show` of a session that is too long to be read at once."""

import contextlib
import shutil

import pytest

from cueline.client import show
from cueline.client.history import LAST
from tests.cli.conftest import Shell
from tests.damage import change

TURNS = 70
DELETES = '[[reply]]\ncalls = [{ name = "delete_file", arguments = { path = "list.txt" } }]\n'
SPOIL = "UPDATE events SET payload = x'7b7d' WHERE version = ?"
LOOKS = """
[[reply]]
text = "I look again."
calls = [{ name = "list_files", arguments = {} }]
usage = { input = 10, output = 1 }
"""


@pytest.fixture(scope="module")
def one_long(tmp_path_factory):
    """Return a folder whose session `one` was answered in its first turn, and asks in its last."""
    folder = tmp_path_factory.mktemp("long")
    shell = Shell(folder)
    with contextlib.chdir(folder):
        more = f"limits.max_turns = 100\n{shell.reachable}"
        script = DELETES + LOOKS * TURNS + DELETES
        agent = shell.agent(script, tools=("list_files", "delete_file"), more=more)
        (folder / "work" / "list.txt").write_text("Ada\n")
        shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")
        shell("deny", "one.1.0.1")
        assert shell("resume", "one", "--inline").exit_code == 3
    return folder


@pytest.fixture
def long(shell, one_long):
    """A shell in a copy of that folder."""
    shutil.copytree(one_long, shell.folder, dirs_exist_ok=True)
    shell.know_log()
    return shell


def hidden(long):
    """Return the version of an event in the middle."""
    types = long.types("one")
    assert len(types) > 2 * LAST
    return len(types) // 2


def test_the_last_turns_are_shown_and_how_the_rest_is(long):
    shown = long("show", "one").stdout

    assert "you: Tidy up\n" in shown
    assert " events not shown here; show them with\n  cueline show one --all\n" in shown
    assert ("  turn 2 ·" in shown, "  turn 71 ·" in shown) == (False, True)
    assert f"session one: waiting · {TURNS + 2} turns · {TURNS + 2} tool calls" in shown


def test_all_of_it_is_shown_where_that_is_asked_for(long):
    shown = long("show", "one", "--all").stdout

    assert "not shown here" not in shown
    assert TURNS == shown.count("I look again.\n")
    assert "so far" in shown
    assert TURNS + 2 == long.json("show", "one")["turns"]


def test_it_says_what_to_answer_and_what_waits_unread(long):
    long("send", "one", "Hurry", "--followup")

    shown, whole = long("show", "one").stdout, long("show", "one", "--all").stdout

    assert "  followup: Hurry\n" in shown
    assert "denied" not in shown.partition("not read yet")[2]
    assert "  cueline approve one.72.0.1\n  cueline resume one\n" in shown
    assert whole.partition("not read yet")[2] == shown.partition("not read yet")[2]


# What takes long is reading, so what is damaged there is not seen.
def test_no_more_is_read_than_what_is_shown(long):
    change(long.log, SPOIL, hidden(long))

    assert 0 == long("show", "one").exit_code
    assert 1 == long("show", "one", "--all").exit_code


def test_damage_at_the_end_is_told_as_ever(long):
    last = len(long.types("one"))
    change(long.log, SPOIL, last)

    shown = long("show", "one")

    assert 1 == shown.exit_code
    assert f"all is well up to version {last - 1}; go on from there with" in shown.stdout


def test_sums_that_would_take_long_are_left_out(long, monkeypatch):
    monkeypatch.setattr(show, "BEHIND", -1)

    shown = long("show", "one").stdout

    assert (
        "\nsession one: waiting · turn 72 · its tokens and cost are counted with --all\n" in shown
    )
