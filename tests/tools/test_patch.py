"""A patch changes files as `git apply` would, or changes nothing."""

import os
import shutil
import stat
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cueline.actors.presence import machine_name
from cueline.errors import PathEscapeError, ToolFailedError
from cueline.events.agent import AgentSpec, Workspace
from cueline.tools.changes import apply_patch, patched
from cueline.tools.patch import apply, parse
from cueline.tools.preview import preview
from tests.drawn import drawn

LINES = st.sampled_from(
    ["a", "b", "", "--- x", "+++ y", "- c", "\\ No", "@@ -1 +1 @@", "ä\r", " d"]
)
TEXTS = st.lists(LINES, max_size=14).flatmap(
    lambda lines: st.sampled_from(["\n".join(lines), "".join(f"{line}\n" for line in lines)])
)
EDITS = st.lists(st.tuples(st.integers(0, 14), st.integers(0, 3), st.lists(LINES)), max_size=3)


# Of few kinds of lines, so that a hunk fits in several places.
FEW = st.sampled_from(["a", "b", ""])
LONG = st.lists(FEW, min_size=5, max_size=40).map("\n".join)
FAR = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 3), st.lists(FEW)), max_size=4)


def edited(text, edits):
    lines = text.split("\n")
    for at, gone, put in edits:
        lines[at : at + gone] = put
    return "\n".join(lines)


def run(folder, *words, ok=(0,), **more):
    done = subprocess.run(words, cwd=folder, capture_output=True, check=False, **more)
    assert done.returncode in ok, done.stderr
    return done.stdout


def git_diff(folder, *words):
    return run(folder, "git", "diff", "--no-index", *words, ok=(0, 1)).decode()


def patch_of(folder, old, new, tool):
    (folder / "a.txt").write_text(old, newline="")
    (folder / "b.txt").write_text(new, newline="")
    if tool == "diff":
        return run(folder, "diff", "-u", "a.txt", "b.txt", ok=(0, 1)).decode()
    return git_diff(folder, "a.txt", "b.txt").replace("b/b.txt", "b/a.txt")


def by_git(folder, text, patch):
    """Return what `git apply` makes of a text; None if it refuses."""
    (folder / "a.txt").write_text(text, newline="")
    done = subprocess.run(
        ["git", "apply", "--whitespace=nowarn", "-"],
        cwd=folder,
        input=patch.encode(),
        capture_output=True,
        check=False,
    )
    return (folder / "a.txt").read_bytes() if done.returncode == 0 else None


def by_us(text, patch):
    try:
        (change,) = parse(patch)
        return apply(change, text.encode())
    except ValueError:
        return None


@pytest.mark.parametrize("tool", ["git", "diff"])
@settings(max_examples=drawn(100), deadline=None, derandomize=True)
@given(old=TEXTS, edits=EDITS)
def test_a_real_patch_makes_the_new_bytes(old, edits, tool, tmp_path_factory):
    folder, new = tmp_path_factory.mktemp("patch"), edited(old, edits)
    patch = patch_of(folder, old, new, tool)

    assert old == new or new.encode() == by_us(old, patch)


@settings(max_examples=drawn(600), deadline=None, derandomize=True)
@given(old=LONG, edits=FAR, since=FAR)
def test_a_patch_of_another_version_does_what_git_apply_does(old, edits, since, tmp_path_factory):
    # With a last line that does not end, git can join two lines of another version to one.
    old, new, moved = (f"{text}\n" for text in (old, edited(old, edits), edited(old, since)))
    folder = tmp_path_factory.mktemp("patch")
    patch = patch_of(folder, old, new, "git")

    assert old == new or by_git(folder, moved, patch) == by_us(moved, patch)


HEAD = "--- a/a.txt\n+++ b/a.txt\n"


@pytest.mark.parametrize(
    ("lines", "hunks", "changed"),
    [
        # Two places are equally near: the later one.
        ({7: "x", 8: "a", 9: "x", 13: "x", 14: "a", 15: "x"}, [(10, "a", "b")], {14: "b"}),
        # The nearer place is the result of the first hunk.
        (
            {3: "x", 4: "b", 5: "x", 12: "x", 13: "a", 14: "x"},
            [(3, "b", "a"), (6, "a", "c")],
            {4: "a", 13: "c"},
        ),
    ],
)
def test_a_hunk_that_moved_goes_where_git_moves_it(tmp_path, lines, hunks, changed):
    was = {number: f"line {number}" for number in range(1, 21)} | lines
    patch = HEAD + "".join(
        f"@@ -{at},3 +{at},3 @@\n x\n-{old}\n+{new}\n x\n" for at, old, new in hunks
    )
    text, wanted = ("".join(f"{each}\n" for each in d.values()) for d in (was, was | changed))

    assert wanted.encode() == by_us(text, patch) == by_git(tmp_path, text, patch)


@pytest.fixture
def versions(workspace, tmp_path):
    """Two versions of a folder, the older as the workspace, and what differs."""
    old, new = tmp_path / "old", tmp_path / "new"
    names = ["a.txt", "deep/er/b.txt", "gone.txt", "empty-gone.txt", "naïve name.txt"]
    for name in names:
        (old / name).parent.mkdir(parents=True, exist_ok=True)
        (old / name).write_text("" if "empty" in name else "one\ntwo\nthree\n")
    shutil.copytree(old, new)
    for name in names:
        (new / name).write_text("one\n2\nthree\nfour")
    for name in names[2:4]:
        (new / name).unlink()
    (new / "added").mkdir()
    (new / "added/run.sh").write_text("#!/bin/sh\n")
    (new / "added/run.sh").chmod(0o755)
    (new / "added/empty.txt").write_text("")
    shutil.copytree(old, workspace, dirs_exist_ok=True)
    return old, new


def contents(folder):
    files = (path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def paths_of(old, new):
    return sorted(contents(old).keys() | contents(new).keys())


def test_a_patch_of_git_changes_creates_and_deletes_files(use, workspace, versions, tmp_path):
    patch = git_diff(tmp_path, "--no-renames", "old", "new")
    patch = patch.replace("a/old/", "a/").replace("b/new/", "b/")
    patch = patch.replace("a/new/", "a/").replace("b/old/", "b/")

    told = use(apply_patch, paths=paths_of(*versions), patch=patch)

    assert contents(versions[1]) == contents(workspace)
    assert 0o755 == stat.S_IMODE((workspace / "added/run.sh").stat().st_mode)
    assert {"created added/run.sh", "deleted gone.txt", "changed a.txt"} <= {*told.splitlines()}


def test_a_patch_of_diff_does_so_too(use, workspace, versions, tmp_path):
    # It writes nothing of empty files.
    (workspace / "empty-gone.txt").unlink()
    (versions[1] / "added/empty.txt").unlink()
    patch = run(tmp_path, "diff", "-ruN", "old", "new", ok=(0, 1)).decode()

    use(apply_patch, paths=paths_of(*versions), patch=patch)

    assert contents(versions[1]) == contents(workspace)


def test_a_file_that_is_emptied_stays(use, workspace, tmp_path):
    (workspace / "a.txt").write_text("x\n")
    patch = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +0,0 @@\n-x\n"

    use(apply_patch, paths=["a.txt"], patch=patch)

    assert b"" == (workspace / "a.txt").read_bytes()


ONE = "--- a/{0}\n+++ b/{0}\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n"
OTHER = "--- a/{0}\n+++ b/{0}\n@@ -1,3 +1,3 @@\n one\n-zwei\n+2\n three\n"
NEW = "--- /dev/null\n+++ b/{0}\n@@ -0,0 +1 @@\n+x\n"
GONE = "--- a/{0}\n+++ /dev/null\n@@ -1,2 +0,0 @@\n-one\n-two\n"


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (
            OTHER.format("b.txt"),
            r"b\.txt: hunk 1 of 1 .* does not fit; nearest are the lines from 1, but line 2 is",
        ),
        (ONE.format("none.txt"), "none.txt: there is no such file"),
        (NEW.format("b.txt"), "b.txt: the patch creates it, and it is there"),
        (GONE.format("b.txt"), "b.txt: .*does not fit"),
        (ONE.format("c.txt"), "it changes 'c.txt', which `paths` does not name"),
        (ONE.format("b.txt").replace(",3 +1", ",2 +1"), "hunk 1 .* has other lines than it says"),
        (f"{ONE.format('b.txt')}+more\n", "more lines than its `@@` says"),
        (ONE.format("big.txt"), "larger than"),
    ],
)
def test_a_patch_that_does_not_fit_changes_nothing(use, workspace, patch, said):
    (workspace / "a.txt").write_text("one\ntwo\nthree\n")
    (workspace / "b.txt").write_text("one\ntwo\nthree\n")
    (workspace / "c.txt").write_text("one\ntwo\nthree\n")
    (workspace / "big.txt").write_bytes(b"x" * 10_000_001)
    before = contents(workspace)

    with pytest.raises(ToolFailedError, match=said):
        use(
            apply_patch,
            paths=["a.txt", "b.txt", "none.txt", "big.txt"],
            patch=f"{ONE.format('a.txt')}{patch}",
        )

    assert before == contents(workspace)


@pytest.mark.parametrize(
    ("patch", "said"),
    [
        (ONE.format("b.txt").split("\n", 2)[2], "without the lines `---` and `"),
        ("rename from b.txt\n", "no renames"),
        ("GIT binary patch\n", "binary"),
        ("nothing\n", "there is no change in it"),
    ],
)
def test_what_is_no_patch_of_texts_is_refused(patch, said):
    with pytest.raises(ValueError, match=said):
        parse(patch)


@pytest.mark.usefixtures("versions")
def test_a_failure_in_the_middle_puts_back_what_was_written(use, workspace):
    (workspace / "gone.txt").write_text("one\ntwo\n")
    (workspace / "gone.txt").chmod(0o640)
    before = contents(workspace)
    # Only when the first is there, the last cannot be.
    patch = f"{ONE.format('a.txt')}{GONE.format('gone.txt')}{NEW.format('x')}{NEW.format('x/y')}"

    with pytest.raises(ToolFailedError):
        use(apply_patch, paths=["a.txt", "gone.txt", "x", "x/y"], patch=patch)

    assert before == contents(workspace)
    assert 0o640 == stat.S_IMODE((workspace / "gone.txt").stat().st_mode)


@pytest.mark.parametrize("path", ["../a.txt", "/etc/passwd", ".cueline/log.db", "link", "hard"])
def test_a_path_outside_is_refused(use, workspace, outside, path):
    (workspace / "link").symlink_to(outside / "secret.txt")
    os.link(outside / "secret.txt", workspace / "hard")
    patch = "--- a\n+++ {0}\n@@ -1 +1 @@\n-hidden\n\\ No newline at end of file\n+x\n"

    with pytest.raises(PathEscapeError):
        use(apply_patch, paths=[path], patch=patch.format(path))

    assert "hidden" == (outside / "secret.txt").read_text()


def test_a_question_shows_what_a_patch_changes_in_the_files(workspace):
    (workspace / "a.txt").write_text("zero\none\ntwo\nthree\n")
    place = Workspace(machine=machine_name(), path=str(workspace))
    agent = AgentSpec(name="a", provider="scripted", model="m", workspace=place)
    patch = f"{ONE.format('a.txt')}{NEW.format('new.txt')}".replace("-1,3 +1,3", "-2,3 +2,3")

    def shown(**arguments):
        return preview("log", [], apply_patch.spec(), arguments, agent).splitlines()

    assert [
        *("--- a/a.txt", "+++ b/a.txt", "@@ -1,4 +1,4 @@", " zero", " one", "-two", "+2", " three"),
        *("--- a/new.txt", "+++ b/new.txt", "@@ -0,0 +1 @@", "+x"),
    ] == shown(paths=["a.txt", "new.txt"], patch=patch)
    assert [] == shown(paths=["a.txt"], patch=patch) == shown(paths="a.txt", patch=patch)


def test_two_changes_of_one_file_follow_each_other(workspace):
    (workspace / "a.txt").write_text("one\ntwo\nthree\n")
    again = "--- a/a.txt\n+++ b/a.txt\n@@ -2 +2 @@\n-2\n+zwei\n three\n".replace("2 +2", "2,2 +2,2")

    (found,) = patched(workspace, ["a.txt"], ONE.format("a.txt") + again)

    assert (b"one\ntwo\nthree\n", b"one\nzwei\nthree\n") == (found.before, found.after)
