"""What a call would change, as far as it can be seen."""

from pathlib import Path

import pytest

from cueline.actors.presence import machine_name
from cueline.events.agent import Workspace
from cueline.tools.files import LARGEST, preview, read_file, write_file
from cueline.tools.shell import run_command

LOG = Path("elsewhere/log.db")


@pytest.fixture
def place(tmp_path):
    return Workspace(machine=machine_name(), path=str(tmp_path))


def shown(place, path="a.txt", content="new\n", tool=write_file):
    return preview(str(LOG), [LOG], tool.spec(), {"path": path, "content": content}, place)


def test_a_write_is_shown_as_a_difference(place, tmp_path):
    (tmp_path / "a.txt").write_text("same\nold\n")

    assert ["--- a/a.txt", "+++ b/a.txt", "@@ -1,2 +1,2 @@", " same", "-old", "+new"] == shown(
        place, content="same\nnew\n"
    ).splitlines()


@pytest.mark.parametrize("path", ["a.txt", "deep/er/a.txt"])
def test_a_new_file_is_all_new(place, path):
    assert "+new" in shown(place, path)


def test_a_write_that_changes_nothing_shows_nothing(place, tmp_path):
    (tmp_path / "a.txt").write_text("new\n")

    assert "" == shown(place)


@pytest.mark.parametrize("content", ["new\r\n", "new"])
def test_a_write_that_changes_but_the_ends_of_lines_is_said_to(place, tmp_path, content):
    (tmp_path / "a.txt").write_text("new\n")

    assert "a/a.txt: only the ends of lines change" == shown(place, content=content)


@pytest.mark.parametrize(
    "path",
    [
        "../a.txt",
        "/etc/passwd",
        "link",
        "folder",
        "image",
        "huge",
        "",
        f"{'x' * 300}/a.txt",
        "a\0b",
    ],
)
def test_what_cannot_be_seen_shows_nothing(place, tmp_path, path):
    (tmp_path / "link").symlink_to("/etc/passwd")
    (tmp_path / "folder").mkdir()
    (tmp_path / "image").write_bytes(b"\xff\xfe\x00")
    (tmp_path / "huge").write_bytes(b"x" * (LARGEST + 1))

    assert "" == shown(place, path)


def test_a_workspace_of_another_machine_is_not_looked_at(place, tmp_path):
    (tmp_path / "a.txt").write_text("old\n")

    assert "" == shown(place.model_copy(update={"machine": "elsewhere"}))
    assert "" == shown(None)


def test_only_what_a_tool_declares_to_write_is_shown(place):
    assert "" == shown(place, tool=read_file)


def test_a_long_difference_is_cut(place):
    told = shown(place, content="line\n" * 1000)

    assert told.endswith("lines more]")


def test_a_file_of_too_many_lines_is_named_and_not_compared(place, tmp_path):
    # It took minutes, in which the host answered nobody.
    numbers = [str(n % 110) for n in range(30_000)]
    (tmp_path / "a.txt").write_text("\n".join(numbers))

    told = shown(place, content="\n".join(reversed(numbers)))

    assert "30,000 lines" in told
    (tmp_path / "a.txt").write_text("\n".join([*numbers[:-1], "changed"]))
    assert told != shown(place, content="\n".join(reversed(numbers)))


def test_a_question_about_a_command_says_that_the_log_is_in_its_workspace(place, tmp_path):
    log = tmp_path / ".cueline" / "log.db"
    command = run_command.spec(), {"command": "rm -r ."}, place
    files = [log]

    assert f"can read, change or delete the log {log}" in preview(str(log), files, *command)
    assert "" == preview(str(LOG), [LOG], *command)
    assert "" == preview(str(log), files, read_file.spec(), {"path": "a.txt"}, place)
