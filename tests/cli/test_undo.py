"""`cueline show --diff` and `cueline undo`: what a session changed, and how it is put back."""

import json

import pytest

from cueline.events.sanitize import REDACTED

TOOLS = ("write_file", "edit_file", "apply_patch", "delete_file")
OFF = '[policy]\napproval = ["off"]\n'
PATCH = "--- a/notes.md\n+++ b/notes.md\n@@ -1,2 +1,2 @@\n-ONE\n+1\n two\n"


def reply(*calls):
    lines = ", ".join(
        f"{{ name = {json.dumps(name)}, arguments = {{ "
        + ", ".join(f"{key} = {json.dumps(value)}" for key, value in arguments.items())
        + " } }"
        for name, arguments in calls
    )
    return f"[[reply]]\ncalls = [{lines}]\n"


SCRIPT = (
    reply(("edit_file", {"path": "notes.md", "old": "one", "new": "ONE"}))
    + reply(("apply_patch", {"paths": ["notes.md"], "patch": PATCH}))
    + reply(
        ("write_file", {"path": "new/run.sh", "content": "echo\n"}),
        ("delete_file", {"path": "old.bin"}),
    )
    + '[[reply]]\ntext = "Done."\n'
)
OLD = b"\xff\0old"
NOTES = b"one\ntwo\n"


def files(folder):
    found = (each for each in folder.rglob("*") if each.is_file())
    return {str(each.relative_to(folder)): each.read_bytes() for each in found}


def edit(shell):
    agent = shell.agent(SCRIPT, tools=TOOLS, more=OFF)
    work = shell.folder / "work"
    (work / "notes.md").write_bytes(NOTES)
    (work / "old.bin").write_bytes(OLD)
    (work / "old.bin").chmod(0o750)
    done = shell("run", "Tidy", "--agent", agent, "--inline", "--id", "one")
    assert 0 == done.exit_code, done.output
    assert {"notes.md": b"1\ntwo\n", "new/run.sh": b"echo\n"} == files(work)


@pytest.fixture
def edited(begin):
    """A shell whose session `one` has changed three files."""
    shell = begin(edit)
    shell.work = shell.folder / "work"
    return shell


def undone(shell, *words):
    """Undo, and answer yes from another shell."""
    asked = shell("undo", *words, "--inline")
    assert 3 == asked.exit_code, asked.output
    (question,) = shell.json("pending")
    assert 0 == shell("approve", question["id"]).exit_code
    ended = shell("resume", question["session"], "--inline")
    return asked, question, ended


def test_what_a_session_changed_is_shown_from_its_first_call_to_its_last(edited):
    shown = edited("show", "one", "--diff").stdout

    assert [
        *("--- /dev/null", "+++ b/new/run.sh", "@@ -0,0 +1 @@", "+echo"),
        *("--- a/notes.md", "+++ b/notes.md", "@@ -1,2 +1,2 @@", "-one", "+1", " two"),
        "a/old.bin: 5 bytes become 0, no text",
    ] == shown.splitlines()


def test_the_changes_have_a_form_for_programs(edited):
    (edited.work / "notes.md").write_text("mine\n")

    new, notes, old = edited.json("show", "one", "--diff")

    assert ("new/run.sh", ["3.0"], "") == (new["path"], new["calls"], new["before_digest"])
    assert (["1.0", "2.0"], "") == (notes["calls"], notes["diff"])
    assert "its text after the last call is not known" in notes["unknown"]
    assert ("", ["3.1"]) == (old["after_digest"], old["calls"])


def test_a_session_is_undone_by_a_call_that_asks_and_shows_the_change(edited):
    asked, question, ended = undone(edited, "one")

    assert {"notes.md": NOTES, "old.bin": OLD} == files(edited.work)
    assert 0o750 == (edited.work / "old.bin").stat().st_mode & 0o777
    assert "-1\n+one\n two\n" in asked.stdout
    assert ("restore_files", True) == (question["tool"], "-1\n+one" in question["preview"])
    assert (0, True) == (ended.exit_code, "restored notes.md" in ended.stdout)
    assert ["one"] == [each["labels"].get("undo_of") for each in edited.json("list")][:1]


def test_one_call_is_undone_alone(edited):
    undone(edited, "one", "3.1")

    assert {"notes.md": b"1\ntwo\n", "new/run.sh": b"echo\n", "old.bin": OLD} == files(edited.work)


def test_what_was_undone_is_not_undone_again_but_the_undoing_is(edited):
    after = files(edited.work)
    _, question, _ = undone(edited, "one")

    again = edited("undo", "one", "--inline")
    undone(edited, question["session"])

    assert 2 == again.exit_code
    assert "there is nothing to undo: all its files are as before it" in again.stderr
    assert after == files(edited.work)


def test_a_file_that_has_changed_since_is_named_and_nothing_is_lost(edited):
    (edited.work / "notes.md").write_text("mine\n")
    before = files(edited.work)

    refused = edited("undo", "one", "--inline")

    assert (2, before) == (refused.exit_code, files(edited.work))
    assert "one: notes.md has changed since, so nothing is undone" in refused.stderr
    assert ["one"] == [each["id"] for each in edited.json("list")]


def test_a_file_that_changes_while_the_question_is_open_is_left_alone(edited):
    edited("undo", "one", "--inline")
    (edited.work / "new/run.sh").write_text("mine\n")
    before = files(edited.work)

    # The yes was to another change, so it is asked about again; the call itself refuses, too.
    for expected in (3, 1):
        (question,) = edited.json("pending")
        edited("approve", question["id"])
        ended = edited("resume", question["session"], "--inline")
        assert (expected, before) == (ended.exit_code, files(edited.work))

    assert "new/run.sh: has changed since" in ended.stdout


def test_a_denied_undoing_changes_nothing(edited):
    before = files(edited.work)
    edited("undo", "one", "--inline")
    (question,) = edited.json("pending")

    edited("deny", question["id"])
    edited("resume", question["session"], "--inline")

    assert before == files(edited.work)


def test_an_earlier_call_is_refused_while_a_later_one_stands(edited):
    refused = edited("undo", "one", "1.0", "--inline")

    assert (2, True) == (refused.exit_code, "notes.md has changed since" in refused.stderr)


def test_a_call_that_changed_nothing_is_named_with_those_that_did(edited):
    refused = edited("undo", "one", "7.0", "--inline")

    assert 2 == refused.exit_code
    assert "the call 7.0 changed no file; those that did: 1.0, 2.0, 3.0, 3.1" in refused.stderr


def test_a_content_with_a_secret_is_not_recorded_and_said_not_to_be(shell, monkeypatch):
    monkeypatch.setenv("SHOP_TOKEN", "canary-3f9c1e77aa")
    script = reply(("write_file", {"path": "a.env", "content": "x\n"})) + '[[reply]]\ntext = "."\n'
    agent = shell.agent(script, tools=TOOLS, more=f'secrets = ["SHOP_TOKEN"]\n{OFF}')
    (shell.folder / "work/a.env").write_text("key=canary-3f9c1e77aa\n")
    shell("run", "Go", "--agent", agent, "--inline", "--id", "one")

    shown, refused = shell("show", "one", "--diff"), shell("undo", "one", "--inline")

    assert "a.env (1.0): its text before is not recorded: it is over 10 MB, or" in shown.stdout
    assert (2, True) == (refused.exit_code, "what a.env held before is not" in refused.stderr)
    assert b"canary-3f9c" not in shell.log.read_bytes()
    assert "x\n" == (shell.folder / "work/a.env").read_text()
    assert REDACTED not in shown.stdout


def test_a_change_of_another_program_between_two_calls_is_not_undone(shell):
    write = {"path": "a.txt", "content": "1\n"}
    script = reply(("write_file", write)) + '[[reply]]\ntext = "."\n'
    script += reply(("write_file", {"path": "a.txt", "content": "2\n"})) + '[[reply]]\ntext = "."\n'
    agent = shell.agent(script, tools=TOOLS, more=OFF)
    file = shell.folder / "work/a.txt"
    shell("run", "Go", "--agent", agent, "--inline", "--id", "one", "--open", typed="")
    file.write_text("mine\n")
    shell("send", "one", "Again")
    shell("resume", "one", "--inline")

    refused = shell("undo", "one", "--inline")
    undone(shell, "one", "3.0")

    assert "another program changed a.txt after the call 1.0; undo single calls" in refused.stderr
    assert "mine\n" == file.read_text()


def test_a_session_that_changed_no_file_says_so(finished):
    shown, refused = finished("show", "one", "--diff"), finished("undo", "one", "--inline")

    assert (0, "") == (shown.exit_code, shown.stdout)
    assert (2, True) == (refused.exit_code, "its calls changed no file" in refused.stderr)
