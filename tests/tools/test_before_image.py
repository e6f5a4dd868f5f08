"""A call that changes a file brings what the file held before to the log."""

import hashlib
import os

import pytest

from cueline.actors.runner import ToolReport
from cueline.actors.runner_desk import ActorReply, RunnerReply
from cueline.actors.runner_wire import json_of_reply, reply_of
from cueline.actors.tool_port import FileImage
from cueline.errors import ToolFailedError
from cueline.tools.before_image import BEFORE_LIMIT
from cueline.tools.changes import apply_patch, restore_files
from cueline.tools.files import delete_file, edit_file, write_file
from cueline.tools.tool import ToolContext

PATCH = "--- a/a.txt\n+++ b/a.txt\n@@ -1 +1 @@\n-old\n+new\n"


def digest(content):
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def changes(workspace):
    def call(tool, **arguments):
        context = ToolContext(session="s", effect="1.0", attempt=1, key="k", folder=workspace)
        tool.run(arguments, context)
        return context.changes

    return call


@pytest.mark.parametrize(
    ("tool", "arguments", "after"),
    [
        (write_file, {"path": "a.txt", "content": "new\n"}, digest(b"new\n")),
        (edit_file, {"path": "a.txt", "old": "old", "new": "new"}, digest(b"new\n")),
        (apply_patch, {"paths": ["a.txt"], "patch": PATCH}, digest(b"new\n")),
        (delete_file, {"path": "a.txt"}, ""),
    ],
)
def test_a_change_has_the_bytes_before_and_both_digests(changes, workspace, tool, arguments, after):
    (workspace / "a.txt").write_text("old\n")
    (workspace / "a.txt").chmod(0o750)

    found = changes(tool, **arguments)

    assert [FileImage("a.txt", digest(b"old\n"), after, 0o750, b"old\n")] == found


def test_a_new_file_had_none(changes):
    found = changes(write_file, path="deep/a.txt", content="")

    assert [FileImage("deep/a.txt", "", digest(b""))] == found


def test_what_changes_nothing_or_fails_records_nothing(changes, workspace):
    (workspace / "a.txt").write_text("old\n")

    assert [] == changes(write_file, path="a.txt", content="old\n")
    assert [] == changes(delete_file, path="b.txt")
    with pytest.raises(ToolFailedError):
        changes(write_file, path="a.txt/b.txt", content="x")


def test_of_a_large_file_and_of_one_with_a_name_outside_only_the_digest_is_kept(
    changes, workspace, outside
):
    (workspace / "huge").write_bytes(b"x" * (BEFORE_LIMIT + 1))
    os.link(outside / "secret.txt", workspace / "shared")

    (huge,) = changes(delete_file, path="huge")
    (shared,) = changes(write_file, path="shared", content="x")

    assert (digest(b"x" * (BEFORE_LIMIT + 1)), None) == (huge.before_digest, huge.before)
    assert (digest(b"hidden"), None) == (shared.before_digest, shared.before)


async def test_the_changes_come_out_of_the_worker_with_the_result(warm_executor, order, workspace):
    (workspace / "a.txt").write_bytes(b"\xff\0old")
    two = "--- /dev/null\n+++ b/b\n@@ -0,0 +1 @@\n+x\n" + PATCH.replace("a.txt", "b.txt")
    (workspace / "b.txt").write_text("old\n")
    (workspace / "c.txt").write_text("1\nold\n3\n")
    three = PATCH.replace("a.txt", "c.txt").replace("-1 +1 @@", "-1,3 +1,3 @@\n 1") + " 3\n"

    written = await warm_executor.call(order(write_file, path="a.txt", content="new\n"))
    patched = await warm_executor.call(
        order(apply_patch, paths=["b", "b.txt", "c.txt"], patch=two + three)
    )

    assert b"wrote 4 bytes to a.txt" == written.content
    assert [b"\xff\0old"] == [each.before for each in written.changes]
    assert [None, b"old\n", b"1\nold\n3\n"] == [each.before for each in patched.changes]
    assert b"created b\nchanged b.txt\nchanged c.txt" == patched.content


def test_the_changes_cross_the_network_to_a_runner_outside(tmp_path):
    image = FileImage("ä.txt", "1", "2", 0o644, b"\xff\0")
    report = ToolReport("returned", b"x", changes=(image, FileImage("b", "", "3")))

    again = reply_of(json_of_reply(RunnerReply(1, ActorReply(report))))

    assert report == again.answer.value


def state(path, content, expected, **more):
    new = None if content is None else content.encode()
    told = {"path": path, "content": content, "digest": "" if new is None else digest(new)}
    return told | {"expected": "" if expected is None else digest(expected)} | more


def test_files_are_put_back_all_or_none(changes, workspace):
    (workspace / "a.txt").write_text("new\n")
    (workspace / "b.txt").write_text("mine\n")
    files = [state("a.txt", "old\n", b"new\n"), state("b.txt", None, b"theirs\n")]

    with pytest.raises(ToolFailedError, match=r"b\.txt: has changed since"):
        changes(restore_files, paths=["a.txt", "b.txt"], files=files)
    assert "new\n" == (workspace / "a.txt").read_text()

    files[1]["expected"] = digest(b"mine\n")
    found = changes(restore_files, paths=["a.txt", "b.txt"], files=files)
    assert [b"new\n", b"mine\n"] == [each.before for each in found]
    assert ["a.txt"] == [path.name for path in workspace.iterdir()]
    # A run after a crash finds them as they shall be.
    assert [] == changes(restore_files, paths=["a.txt", "b.txt"], files=files)


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"digest": digest(b"other")}, "was not recorded as it was"),
        ({"path": "b.txt"}, "is not named in `paths`"),
    ],
)
def test_what_is_not_the_recorded_content_or_not_named_is_not_put_back(
    changes, workspace, wrong, said
):
    (workspace / "a.txt").write_text("new\n")

    with pytest.raises(ToolFailedError, match=said):
        changes(restore_files, paths=["a.txt"], files=[state("a.txt", "x", b"new\n") | wrong])

    assert "new\n" == (workspace / "a.txt").read_text()
