"""The file tools: what they do, and that they stay in the workspace."""

import ctypes
import os
import stat
import threading
from collections import Counter
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest

from cueline.errors import PathEscapeError, ToolFailedError
from cueline.events.sanitize import CUT
from cueline.tools.files import delete_file, edit_file, read_file, write_file
from cueline.tools.search import list_files, search_files
from cueline.tools.tool import Image
from cueline.tools.walk import DEPTH, walk

ANY = [
    (read_file, {}),
    (write_file, {"content": "x"}),
    (edit_file, {"old": "hidden", "new": "x"}),
    (list_files, {}),
    (search_files, {"pattern": "hidden"}),
    (delete_file, {}),
]


def names_in(folder):
    return [path.name for path in folder.iterdir()]


def test_what_was_written_is_read(use):
    use(write_file, path="notes/today.txt", content="naïve\n")

    assert "naïve\n" == use(read_file, path="notes/today.txt")


def test_a_file_is_replaced_as_a_whole_and_keeps_its_permissions(use, workspace):
    script = workspace / "run.sh"
    script.write_text("a much longer text than the new one")
    script.chmod(0o755)

    use(write_file, path="run.sh", content="short")

    assert "short" == script.read_text()
    assert 0o755 == stat.S_IMODE(script.stat().st_mode)


def test_an_edit_changes_one_place_and_keeps_the_rest(use, workspace):
    script = workspace / "run.sh"
    script.write_bytes(b"a\r\nb = 1\r\n\xc3\xa4 b\n")
    script.chmod(0o755)

    assert "replaced 1 place in run.sh" == use(edit_file, path="run.sh", old="b = 1", new="b = 22")
    assert b"a\r\nb = 22\r\n\xc3\xa4 b\n" == script.read_bytes()
    assert 0o755 == stat.S_IMODE(script.stat().st_mode)


def test_an_edit_of_every_place(use, workspace):
    (workspace / "a").write_text("x y x x")

    assert "replaced 3 places in a" == use(edit_file, path="a", old="x", new="", every=True)
    assert " y  " == (workspace / "a").read_text()


@pytest.mark.parametrize(
    ("text", "old", "why"),
    [
        (b"a\nb\na\n", "a", r"has the old text 2 times, at the lines 1, 3; name more"),
        (b"a\n" * 7, "a", r"7 times, at the lines 1, 2, 3, 4, 5 …"),
        (b"one\n", "two", r"does not have the old text; read the file"),
        (b"x\n  if a:\n", "if  a:\n", r"but line 2 is like its first line"),
        (b"a\r\nb\r\n", "a\nb", r"other line ends"),
        (b"\xff\xfe", "a", r"no text in UTF-8"),
    ],
)
def test_an_edit_that_fits_not_exactly_changes_nothing_and_says_why(use, workspace, text, old, why):
    (workspace / "a").write_bytes(text)
    with pytest.raises(ToolFailedError, match=why):
        use(edit_file, path="a", old=old, new="new")

    assert text == (workspace / "a").read_bytes()


def test_writing_leaves_nothing_else_behind(use, workspace):
    use(write_file, path="a.txt", content="x")
    with pytest.raises(ToolFailedError):
        use(write_file, path="a.txt/b.txt", content="x")

    assert ["a.txt"] == names_in(workspace)


def test_a_file_that_is_not_there_is_told(use):
    with pytest.raises(ToolFailedError, match=r"tool_error: a/b\.txt: no such file or directory"):
        use(read_file, path="a/b.txt")


def test_a_workspace_that_is_not_there_is_told(use, workspace):
    workspace.rmdir()

    with pytest.raises(ToolFailedError, match="the workspace: no such file or directory"):
        use(read_file, path="a.txt")


@pytest.mark.parametrize(("tool", "arguments"), ANY)
@pytest.mark.parametrize(
    "path", ["../outside", "a/../../outside/secret.txt", "..", "/etc/passwd", "/"]
)
def test_a_path_that_leads_out_is_refused(use, outside, tool, arguments, path):
    with pytest.raises(PathEscapeError) as refused:
        use(tool, path=path, **arguments)

    assert path == refused.value.subject


@pytest.mark.parametrize(("tool", "arguments"), ANY)
@pytest.mark.parametrize("path", [".cueline/log.db", ".CueLine", "a/.cueline/./log.db-wal"])
def test_a_path_to_a_log_is_refused(use, workspace, tool, arguments, path):
    with pytest.raises(PathEscapeError, match=r"`\.cueline` holds cueline's log"):
        use(tool, path=path, **arguments)

    assert [] == names_in(workspace)


def test_a_log_is_neither_listed_nor_searched(use, workspace):
    (workspace / ".cueline").mkdir()
    (workspace / ".cueline" / "log.db").write_text("hidden")

    assert ".cueline/" == use(list_files, recursive=True)
    assert "[no match]" == use(search_files, pattern="hidden")


@pytest.mark.parametrize(("tool", "arguments"), ANY)
def test_a_folder_that_is_a_link_is_not_followed(use, workspace, outside, tool, arguments):
    (workspace / "link").symlink_to(outside)

    with pytest.raises(PathEscapeError, match="`link` is a symbolic link"):
        use(tool, path="link/secret.txt", **arguments)


@pytest.mark.parametrize(("tool", "arguments"), ANY[:4])
def test_a_file_that_is_a_link_is_not_followed(use, workspace, outside, tool, arguments):
    (workspace / "link").symlink_to(outside / "secret.txt")

    with pytest.raises(PathEscapeError, match="`link` is a symbolic link"):
        use(tool, path="link", **arguments)


def test_a_file_with_a_name_outside_is_not_read(use, workspace, outside):
    (workspace / "notes.txt").hardlink_to(outside / "secret.txt")

    with pytest.raises(PathEscapeError, match=r"`notes\.txt` has 2 names \(hard links\)"):
        use(read_file, path="notes.txt")

    assert "[left out 1 binary, huge or unreadable files]" in use(search_files, pattern="hidden")


def test_a_file_whose_names_are_all_inside_is_read(use, workspace):
    (workspace / "deep").mkdir()
    (workspace / "deep/one.txt").write_text("hidden\n")
    (workspace / "two.txt").hardlink_to(workspace / "deep/one.txt")

    assert "hidden\n" == use(read_file, path="two.txt")
    assert 2 == use(search_files, pattern="hidden").count("hidden")


def test_writing_to_a_name_of_an_outside_file_leaves_that_file_as_it_is(use, workspace, outside):
    (workspace / "notes.txt").hardlink_to(outside / "secret.txt")
    before = (outside / "secret.txt").read_text()

    use(write_file, path="notes.txt", content="new")

    assert before == (outside / "secret.txt").read_text()
    assert "new" == (workspace / "notes.txt").read_text()


def test_links_are_listed_and_neither_searched_nor_entered(use, workspace, outside):
    (workspace / "link").symlink_to(outside)
    (workspace / "file").symlink_to(outside / "secret.txt")

    assert "file  (symbolic link)\nlink  (symbolic link)" == use(list_files, recursive=True)
    assert "[no match]" == use(search_files, pattern="hidden")


def test_deleting_a_link_leaves_what_it_leads_to(use, workspace, outside):
    (workspace / "link").symlink_to(outside / "secret.txt")

    use(delete_file, path="link")

    assert [] == names_in(workspace)
    assert "hidden" == (outside / "secret.txt").read_text()


def test_a_folder_swapped_for_a_link_meanwhile_lets_nothing_out(use, workspace, outside):
    (workspace / "folder").mkdir()
    (workspace / "link").symlink_to(outside)
    done = threading.Event()

    def swap():
        while not done.is_set():
            exchange(bytes(workspace / "folder"), bytes(workspace / "link"))

    swapper = threading.Thread(target=swap)
    swapper.start()
    outcomes = Counter()
    # On a busy machine many attempts may meet the folder, or the link, in a row.
    while outcomes.total() < 1500 or not (outcomes["refused"] and outcomes["missing"]):
        outcomes[attempt(use, outcomes.total())] += 1
    done.set()
    swapper.join()

    assert ["secret.txt"] == names_in(outside)
    assert not outcomes["hidden"]


def exchange(one, other):
    at_cwd, rename_exchange = -100, 2
    assert 0 == ctypes.CDLL(None).renameat2(at_cwd, one, at_cwd, other, rename_exchange)


def attempt(use, number):
    try:
        if number % 2:
            return use(read_file, path="folder/secret.txt")
        return use(write_file, path=f"folder/{number}.txt", content="escaped")
    except PathEscapeError:
        return "refused"
    except ToolFailedError:
        return "missing"


@pytest.mark.parametrize("path", ["deep/er/file.txt", "deep", "deep/link/file.txt", "none/at/all"])
@pytest.mark.parametrize(("tool", "arguments"), ANY)
def test_nothing_stays_open_however_it_ends(use, workspace, tool, arguments, path):
    (workspace / "deep/er").mkdir(parents=True)
    (workspace / "deep/er/file.txt").write_text("nothing hidden")
    (workspace / "deep/link").symlink_to("er")
    before = open_files()

    with suppress(ToolFailedError, PathEscapeError):
        use(tool, path=path, **arguments)

    assert before == open_files()


def test_a_folder_that_may_only_be_listed_is_passed_over(workspace):
    workspace.chmod(0o755)
    for name in ("closed/inner.txt", "last.txt"):
        (workspace / name).parent.mkdir(exist_ok=True)
        (workspace / name).touch()
    (workspace / "closed").chmod(0o744 if os.geteuid() == 0 else 0o444)
    folder = os.open(workspace, os.O_RDONLY)

    with nobody():
        found = [entry.path for entry in walk(folder)]

    os.close(folder)
    (workspace / "closed").chmod(0o755)
    assert ["closed", "last.txt"] == found


@contextmanager
def nobody():
    """Be somebody whom permissions bind, where this is root."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)


def open_files():
    return names_in(Path("/proc/self/fd"))


def test_a_named_pipe_is_refused_at_once(use, workspace):
    os.mkfifo(workspace / "pipe")

    with pytest.raises(ToolFailedError, match="pipe: is a named pipe, not a file"):
        use(read_file, path="pipe")
    with pytest.raises(ToolFailedError, match="pipe: is a named pipe, not a file"):
        use(write_file, path="pipe", content="x")
    assert "[no match]" == use(search_files, pattern="x")


def test_a_folder_is_not_read_written_or_deleted(use, workspace):
    (workspace / "folder").mkdir()

    for tool, arguments in ((read_file, {}), (write_file, {"content": ""}), (delete_file, {})):
        with pytest.raises(ToolFailedError, match="folder: is a folder"):
            use(tool, path="folder", **arguments)


def test_an_image_is_read_as_one(use, workspace):
    image = b"\x89PNG\r\n\x1a\n" + bytes(100)
    (workspace / "photo.txt").write_bytes(image)

    assert Image(image) == use(read_file, path="photo.txt")


def test_an_image_that_is_too_large_is_not_read(use, workspace):
    (workspace / "photo.png").write_bytes(b"\x89PNG\r\n\x1a\n" + bytes(5 * 1024 * 1024))

    with pytest.raises(ToolFailedError, match=r"photo.png: is an image of 5,242,888 bytes"):
        use(read_file, path="photo.png")


def test_a_binary_file_is_not_read(use, workspace):
    (workspace / "data").write_bytes(b"\x7fELF\0\0")

    with pytest.raises(ToolFailedError, match="data: is binary, 6 bytes"):
        use(read_file, path="data")


def test_a_long_file_is_read_in_parts(use, workspace):
    (workspace / "long").write_text("".join(f"{n}\n" for n in range(1, 5001)))

    first = use(read_file, path="long")
    last = use(read_file, path="long", start_line=4999)

    assert first.endswith(f"2000\n{CUT}\n[go on with start_line=2001; the file has 23,893 bytes]")
    assert f"{CUT}4999\n5000\n" == last


def test_a_huge_file_costs_no_more_than_what_is_returned(use, workspace):
    with (workspace / "huge").open("w") as file:
        file.write("x" * 300_000 + "\nnext")
        file.truncate(10**10)

    text = use(read_file, path="huge")

    assert 200_100 > len(text)
    assert "line 1 is cut, go on with start_line=2" in text


def test_a_line_after_the_end_is_told(use, workspace):
    (workspace / "short").write_text("one\ntwo\n")

    assert "there are only 2 lines" in use(read_file, path="short", start_line=9)


def test_a_listing_names_folders_files_and_sizes_in_order(use, workspace):
    for path in ("b.txt", "a/c.txt", ".git/config"):
        use(write_file, path=path, content="1234")

    assert ".git/\na/\nb.txt  4" == use(list_files)
    assert ".git/\na/\na/c.txt  4\nb.txt  4" == use(list_files, recursive=True)
    assert "a/c.txt  4" == use(list_files, path="./a/")


def test_a_search_goes_down_so_many_folders_and_no_further(use, workspace):
    deepest = workspace / "/".join(["d"] * (DEPTH + 1))
    deepest.mkdir(parents=True)
    for folder in (deepest, deepest.parent):
        (folder / "file.txt").write_text("hidden")

    found = use(search_files, pattern="hidden").splitlines()

    assert [f"{'d/' * DEPTH}file.txt:1: hidden"] == found


def test_a_name_with_a_break_in_it_is_one_entry(use, workspace):
    (workspace / "a\nb.txt").write_text("hidden")

    assert '"a\\nb.txt"  6' == use(list_files)
    assert '"a\\nb.txt":1: hidden' == use(search_files, pattern="hidden")


def test_a_listing_has_an_end(use, workspace):
    for number in range(1001):
        (workspace / str(number)).touch()

    assert use(list_files).endswith("[more than 1,000 entries; list a folder further down]")


def test_a_search_finds_text_as_it_is_and_by_expression(use, workspace):
    (workspace / "a.txt").write_text("x.y\nxzy\n")

    assert "a.txt:1: x.y" == use(search_files, pattern="x.y")
    assert "a.txt:1: x.y\na.txt:2: xzy" == use(search_files, pattern="x.y", regex=True)
    assert "a.txt:2: xzy" == use(search_files, pattern="z", path="a.txt")


def test_a_search_says_what_it_left_out_and_where_it_stopped(use, workspace):
    (workspace / "a.bin").write_bytes(b"x\0")
    (workspace / "b.txt").write_text("x\nx\nx\n")

    assert "b.txt:1: x\nb.txt:2: x\n[stopped at 2 matches]\n[left out 1 binary" in use(
        search_files, pattern="x", max_matches=2
    )


@pytest.mark.parametrize(
    ("pattern", "reason"),
    [("(", "unclosed group"), (r"(a)\1", "backreferences"), ("(?=a)", "look-around")],
)
def test_an_expression_that_is_none_is_told(use, pattern, reason):
    with pytest.raises(ToolFailedError, match=f"is no regular expression: .*{reason}"):
        use(search_files, pattern=pattern, regex=True)


def test_a_search_takes_time_in_proportion_to_the_text(use, workspace):
    (workspace / "a.txt").write_text("a" * 100_000 + "b")

    assert "[no match]" == use(search_files, pattern="(a+)+$", regex=True)


def test_deleting_twice_is_deleting_once(use, workspace):
    (workspace / "a.txt").touch()

    assert "deleted a.txt" == use(delete_file, path="a.txt")
    assert "a.txt is not there" == use(delete_file, path="a.txt")


def test_a_name_with_nul_is_told(use):
    with pytest.raises(ToolFailedError, match="has a NUL in it"):
        use(read_file, path="a\0b")
