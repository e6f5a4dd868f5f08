"""Listing and searching leave out what git ignores, and say so."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cueline.errors import ToolFailedError
from cueline.tools.folder import HardLinks, folder_at
from cueline.tools.search import list_files, search_files
from cueline.tools.tool import ToolContext
from cueline.tools.walk import IgnoreRules, walk
from tests.drawn import drawn

ROOT = Path(__file__).parents[2]
NAMES = st.sampled_from(["a", "b", "keep", "x.log", "é"])
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PARTS = st.sampled_from(
    ["a", "b", "keep", "*.log", "*", "**", "?", "[!a]", "x.l[n-p]g", "é", "#", ""]
)
PATTERNS = st.builds(
    lambda negated, parts, end: f"{negated}{'/'.join(parts)}{end}",
    st.sampled_from(["", "", "!"]),
    st.lists(PARTS, min_size=1, max_size=3),
    st.sampled_from(["", "", "/", " ", "\r"]),
)
TREES = st.fixed_dictionaries(
    {
        "files": st.lists(PATHS, min_size=1, max_size=12),
        "rules": st.dictionaries(
            st.sampled_from(["", "a/", "a/b/", ".git/info/"]),
            st.lists(PATTERNS, min_size=1, max_size=4),
            max_size=3,
        ),
    }
)


def git(folder, *words):
    done = subprocess.run(
        ["git", "-c", "core.excludesFile=/dev/null", *words],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return {name.decode() for name in done.stdout.split(b"\0") if name}


def files_of(folder, **arguments):
    context = ToolContext(session="s", effect="1.0", attempt=1, key="k", folder=folder)
    told = list_files.run({"recursive": True} | arguments, context).splitlines()
    return {line.rpartition("  ")[0] for line in told if "  " in line}


def lay(folder, tree):
    for name in tree["files"]:
        path = folder / name
        if not path.exists() and all(not above.is_file() for above in path.parents):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("x")
    for where, lines in tree["rules"].items():
        name = "exclude" if where.startswith(".git/") else ".gitignore"
        if (folder / where).is_dir():
            (folder / where / name).write_text("\n".join(lines))


@settings(max_examples=drawn(150), deadline=None, derandomize=True)
@given(tree=TREES)
def test_the_listed_files_are_those_that_git_lists(tree, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tree")
    git(folder, "init", "-q")
    (folder / ".git/info/exclude").unlink()
    lay(folder, tree)

    assert git(folder, "ls-files", "-co", "--exclude-standard", "-z") == files_of(folder)


def test_the_files_of_a_whole_repository_are_those_that_git_lists(tmp_path):
    folder = tmp_path / "clone"
    git(tmp_path, "clone", "-q", "--depth=1", f"file://{ROOT}", str(folder))
    for name in ("cueline/__pycache__/a.pyc", ".venv/bin/python", "new.py", "dist/a.whl"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("x")
    rules = IgnoreRules(HardLinks(folder))

    with folder_at(folder, ".") as descriptor:
        found = {e.path for e in walk(descriptor, rules=rules) if not e.path.startswith(".git/")}
    folders = {str(above) for name in found for above in Path(name).parents} | {".git"}

    assert git(folder, "ls-files", "-co", "--exclude-standard", "-z") == found - folders
    assert 3 == rules.left_out


@pytest.fixture
def place(workspace):
    names = ("src/a.py", "src/b.txt", "src/deep/er/c.py", "build/d.py", "notes.md")
    for name in names:
        (workspace / name).parent.mkdir(parents=True, exist_ok=True)
        (workspace / name).write_text("hidden\n")
    (workspace / ".gitignore").write_text("build/\n*.txt\n")


@pytest.mark.usefixtures("place")
def test_a_search_leaves_out_what_is_ignored_and_says_so(use):
    found = use(search_files, pattern="hidden")

    assert [
        "notes.md:1: hidden",
        "src/a.py:1: hidden",
        "src/deep/er/c.py:1: hidden",
        "[left out 2 ignored entries (.gitignore); ignored=true has them]",
    ] == found.splitlines()
    assert 5 == use(search_files, pattern="hidden", ignored=True).count(": hidden")
    assert "src/b.txt:1: hidden" == use(search_files, pattern="hidden", path="src/b.txt")


@pytest.mark.usefixtures("place")
def test_the_rules_above_hold_in_a_folder_below_and_not_for_what_is_named(use):
    assert "[left out 1 ignored entry" in use(list_files, path="src")
    assert "build/d.py:1: hidden" == use(search_files, pattern="hidden", path="build")


@pytest.mark.usefixtures("place")
@pytest.mark.parametrize(
    ("glob", "names"),
    [
        ("**/*.py", "build/d.py src/a.py src/deep/er/c.py"),
        ("*/*.py", "build/d.py src/a.py"),
        ("*.md", "notes.md"),
        ("src/**", "src/a.py src/b.txt src/deep/ src/deep/er/ src/deep/er/c.py"),
        ("src/[!a].{txt,py}", "src/b.txt"),
        ("src/?.py", "src/a.py"),
        ("**/er/*", "src/deep/er/c.py"),
    ],
)
def test_a_glob_chooses_the_entries(use, glob, names):
    listed = use(list_files, glob=glob, ignored=True).splitlines()

    assert names.split() == [line.partition("  ")[0] for line in listed]


@pytest.mark.usefixtures("place")
def test_a_glob_is_relative_to_the_path_and_chooses_the_searched_files(use):
    found = use(search_files, pattern="hidden", path="src", glob="deep/**", ignored=True)

    assert "src/deep/er/c.py:1: hidden" == found
    assert "[no match]" == use(list_files, path="src/deep", glob="*.py")


@pytest.mark.parametrize("glob", ["[z-a]", "a" * 3_000_000])
def test_what_is_no_glob_is_refused(use, glob):
    with pytest.raises(ToolFailedError, match="is no glob"):
        use(list_files, glob=glob)


def test_a_file_of_patterns_outside_is_not_read(use, workspace, outside):
    (outside / "rules").write_text("a.txt\n")
    (workspace / "a.txt").write_text("hidden")
    (workspace / ".gitignore").symlink_to(outside / "rules")

    assert "a.txt:1: hidden" in use(search_files, pattern="hidden")


def test_bytes_that_are_no_text_are_found_as_they_are_shown(use, workspace):
    (workspace / "a.txt").write_bytes(b"caf\xe9\n")

    assert "a.txt:1: caf\ufffd" == use(search_files, pattern="caf\ufffd")
