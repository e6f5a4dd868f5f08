"""`cueline diff`: what differs between two sessions, as a person and a program see it."""

import pytest

OFF = '[policy]\napproval = ["off"]\n'
WRITES = """
[[reply]]
calls = [{{ name = "write_file", arguments = {{ path = "notes.md", content = "{content}" }} }}]
usage = {{ input = 100, output = 20 }}

[[reply]]
text = "{text}"
usage = {{ input = 150, output = 10 }}
"""


@pytest.fixture
def two(shell):
    """A shell with two sessions that wrote one file differently."""
    for name, text in (("one", "Done."), ("two", "Done.")):
        script = WRITES.format(content=name, text=text)
        agent = shell.agent(script, tools=("write_file",), more=OFF)
        done = shell("run", "Write", "--agent", agent, "--inline", "--id", name)
        assert 0 == done.exit_code, done.output
        (shell.folder / "work" / "notes.md").unlink()
    return shell


def test_it_shows_the_lines_and_files_that_differ(two):
    said = two("diff", "one", "two")

    assert 0 == said.exit_code, said.output
    lines = said.stdout.splitlines()
    assert ["ONE", "TWO"] == lines[0].split()
    assert "  1 equal line" in lines
    assert [each[:16] for each in lines if each[:1] in "-+" and each] == [
        "- call write_fil",
        "+ call write_fil",
    ]
    assert "notes.md" in lines
    assert "  one changed it:" in lines


def test_a_session_does_not_differ_from_itself(two):
    said = two("diff", "one", "one").stdout

    assert "nothing differs in what was said and called" in said
    assert "notes.md" not in said


def test_programs_get_both_sides(two):
    found = two.json("diff", "one", "two")

    assert ("one", "two") == (found["a"]["id"], found["b"]["id"])
    assert {"both", "a", "b"} == {each["side"] for each in found["transcript"]}
    (file,) = found["files"]
    assert file["a"]["after_digest"] != file["b"]["after_digest"]


def test_a_fork_shares_its_past(two):
    two("fork", "one", "--at", "5", "--id", "later", "--inline")

    found = two.json("diff", "one", "later")

    assert "both" == found["transcript"][0]["side"]


def test_an_unknown_session_is_named(two):
    said = two("diff", "one", "three")

    assert 2 == said.exit_code
    assert "three" in said.stderr
