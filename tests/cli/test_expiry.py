"""What becomes of a question that nobody answered in time, where nobody watches."""


def test_a_question_that_expired_is_not_waited_for_again(shell):
    soon = "[policy]\napproval_seconds = 0.001\n"
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=soon)
    (shell.folder / "work" / "list.txt").touch()

    asked = shell("run", "Tidy up", "--agent", agent, "--inline", "--id", "one")
    resumed = shell("resume", "one", "--inline")

    assert 3 == asked.exit_code
    assert "session one: paused" in asked.stdout
    assert 0 == resumed.exit_code, resumed.output
    assert (shell.folder / "work" / "list.txt").exists()
