"""What a child asks a person, at the terminal of its parent."""

import pytest

LEAD = """
[[reply]]
calls = [{ name = "clerk", arguments = { goal = "delete the list" } }]

[[reply]]
text = "Thanks."
"""
RUN = ("run", "Go", "--agent", "lead.toml", "--inline", "--id", "lead")


@pytest.fixture
def list_file(shell):
    child = shell.agent(shell.deletes, tools=("delete_file",))
    file = shell.folder / "work" / "list.txt"
    file.write_text("Ada\n")
    (shell.folder / "lead.script.toml").write_text(LEAD)
    (shell.folder / "lead.toml").write_text(
        'name = "lead"\nprovider = "scripted"\nmodel = "lead.script.toml"\n'
        f'tools = ["agent:{child}"]\n'
    )
    return file


def test_a_person_answers_for_a_child(terminal, list_file):
    terminal.command(*RUN)
    asked = terminal.sees("Approve? [y/N] (timeout: ")

    assert "│ Session: lead.1.0" in asked
    assert "│ Action: delete_file" in asked
    assert list_file.exists()
    terminal.type("y", "Enter")

    seen = terminal.sees("exit 0")
    assert "Approve? [y/N] y" in seen
    assert "Thanks." in seen
    assert not list_file.exists()


def test_a_question_that_is_answered_elsewhere_is_withdrawn_with_the_child(
    shell, terminal, list_file
):
    terminal.command(*RUN)
    terminal.sees("Approve? [y/N] (timeout: ")

    done = shell("approve", "lead.1.0.1.0.1")

    assert 0 == done.exit_code
    assert "Thanks." in terminal.sees("exit 0")
    assert not list_file.exists()


def test_a_child_asks_while_another_works(shell, terminal, list_file):
    (shell.folder / "slow.script.toml").write_text(shell.slow)
    (shell.folder / "slow.toml").write_text(
        'name = "slow"\nprovider = "scripted"\nmodel = "slow.script.toml"\n'
        'workspace = "work"\ntools = ["list_files"]\n'
    )
    calls = '[{ name = "slow", arguments = { goal = "think" } }, '
    (shell.folder / "lead.script.toml").write_text(LEAD.replace("[{", calls + "{", 1))
    lead = (shell.folder / "lead.toml").read_text()
    (shell.folder / "lead.toml").write_text(
        lead.replace("tools = [", 'tools = ["agent:slow.toml", ')
    )

    terminal.command(*RUN)
    terminal.sees("Approve? [y/N] (timeout: ")
    terminal.type("y", "Enter")

    terminal.sees("child lead.1.1 completed")
    assert not list_file.exists()
    terminal.type("C-c")
    terminal.type("C-c")
