"""What a call would change, as far as it can be seen."""

from pathlib import Path

import pytest

from cueline.actors.presence import machine_name
from cueline.events.agent import AgentSpec, Workspace
from cueline.events.agent_parts import DEFAULT_ISOLATION, Isolation
from cueline.tools.custom import CustomTool
from cueline.tools.files import edit_file, read_file, write_file
from cueline.tools.http_access import HttpAccess
from cueline.tools.preview import LARGEST, preview
from cueline.tools.shell import run_command
from cueline.tools.tool import tool

LOG = Path("elsewhere/log.db")


@pytest.fixture
def place(tmp_path):
    return Workspace(machine=machine_name(), path=str(tmp_path))


def agent(place, isolation=DEFAULT_ISOLATION):
    return AgentSpec(name="a", provider="scripted", model="m", workspace=place, isolation=isolation)


def shown(place, path="a.txt", content="new\n", tool=write_file):
    asked = {"path": path, "content": content}
    return preview(str(LOG), [LOG], tool.spec(), asked, agent(place))


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


@tool(needs_workspace=True)
def sweep():
    """Sweep the workspace."""


LINT = CustomTool(description="Lint.", command=("lint",)).spec(
    "lint", HttpAccess(), in_workspace=True
)


@pytest.mark.parametrize(
    ("tool", "isolation", "warns"),
    [
        (run_command.spec(), "none", True),
        (run_command.spec(), "auto", False),
        (LINT, "none", True),
        (LINT, "bwrap", False),
        (sweep.spec(), "auto", True),
        (read_file.spec(), "none", False),
    ],
)
def test_a_question_about_a_call_that_can_reach_the_log_says_so(
    tool, isolation, warns, place, tmp_path
):
    log = tmp_path / ".cueline" / "log.db"
    asked = tool, {}, agent(place, Isolation(kind=isolation))

    told = preview(str(log), [log], *asked)

    assert warns == (f"can read, change or delete the log {log}" in told)
    assert "" == preview(str(LOG), [LOG], *asked)


def edited(place, **arguments):
    asked = {"path": "a.txt", "old": "b\n", "new": "c\n", **arguments}
    return preview(str(LOG), [LOG], edit_file.spec(), asked, agent(place))


def test_an_edit_is_shown_as_a_difference(place, tmp_path):
    (tmp_path / "a.txt").write_text("a\nb\n")

    assert ["-b", "+c"] == edited(place).splitlines()[-2:]


@pytest.mark.parametrize("arguments", [{"old": "x"}, {"old": ""}, {"old": 1}, {"path": "../a.txt"}])
def test_an_edit_that_would_fail_shows_nothing(place, tmp_path, arguments):
    (tmp_path / "a.txt").write_text("a\nb\n")

    assert "" == edited(place, **arguments)
