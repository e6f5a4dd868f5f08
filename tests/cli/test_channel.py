"""Who is asked by a run, and that nothing begins where nobody can ever answer."""

import pytest


def test_what_asks_waits_for_a_day_where_nobody_watches(asking):
    """000-026, C11: five minutes at a terminal, a day elsewhere."""
    waiting = asking.json("pending")

    assert [("one.1.0.1", "delete_file", {"path": "list.txt"})] == [
        (each["id"], each["tool"], each["arguments"]) for each in waiting
    ]
    assert asking.json("export", "one")["policy"]["approval_seconds"] == 86_400
    assert (asking.folder / "work" / "list.txt").exists()


def test_a_run_that_waits_says_how_to_go_on(shell):
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=shell.reachable)

    done = shell("run", "Tidy", "--agent", agent, "--inline", "--id", "one", "--log", "my.db")

    assert done.exit_code == 3
    assert "  cueline approve one.1.0.1 --log my.db\n" in done.stdout
    assert "  cueline resume one --log my.db\n" in done.stdout


def test_auto_approval_records_request_and_grant(shell):
    """000-027."""
    agent = shell.agent(shell.deletes, tools=("delete_file",))

    done = shell("run", "Tidy", "--agent", agent, "--inline", "--id", "one", "--auto-approve")

    assert done.exit_code == 0
    assert ["ApprovalRequested", "ApprovalResolved"] == [
        type_ for type_ in shell.types("one") if type_.startswith("Approval")
    ]
    assert "granted by auto:cli-flag" in done.stdout


def test_an_agent_whose_policy_is_off_is_not_asked_for(shell):
    """000-052."""
    agent = shell.agent(shell.deletes, tools=("delete_file",), more='[policy]\napproval = "off"\n')

    done = shell("run", "Tidy", "--agent", agent, "--inline", "--id", "one")

    assert done.exit_code == 0
    assert {"ApprovalRequested", "ToolStarted"} & set(shell.types("one")) == {"ToolStarted"}


def test_approval_can_be_required_whatever_the_file_says(shell):
    """000-023."""
    more = f'[policy]\napproval = "off"\n{shell.reachable}'
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=more)

    done = shell("run", "Tidy", "--agent", agent, "--inline", "--id", "one", "--require-approval")

    assert done.exit_code == 3
    assert {"ApprovalRequested", "ToolStarted"} & set(shell.types("one")) == {"ApprovalRequested"}


def test_a_run_without_a_terminal_waits_and_says_how_to_answer(shell):
    """D36: whoever can open the log can answer."""
    agent = shell.agent(shell.deletes, tools=("delete_file",))
    (shell.folder / "work" / "list.txt").touch()

    asked = shell("run", "Tidy", "--agent", agent, "--id", "one")
    approved = shell("approve", "one.1.0.1")
    resumed = shell("resume", "one")

    assert [3, 0, 0] == [each.exit_code for each in (asked, approved, resumed)]
    assert "  cueline approve one.1.0.1\n" in asked.stdout
    assert "  cueline resume one\n" in asked.stdout
    assert not (shell.folder / "work" / "list.txt").exists()


# D36; before anything is recorded, with what to do.
@pytest.mark.parametrize("hook", ["", '[[policy.hooks]]\non = "notify"\ncommand = ["true"]\n'])
def test_an_agent_that_would_ask_is_refused_where_nobody_else_can_open_the_log(shell, hook):
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=hook)

    done = shell("run", "Tidy", "--agent", agent, "--log", "memory:")

    assert done.exit_code == 2
    assert "it asks before it calls delete_file, and nobody can answer" in done.stderr
    assert all(way in done.stderr for way in ("terminal", "file", "--auto-approve"))


def test_a_hook_that_tells_of_questions_is_a_channel(shell):
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=shell.reachable)

    assert 3 == shell("run", "Tidy", "--agent", agent, "--log", "memory:").exit_code


def test_a_fork_that_asks_copies_its_workspace_and_waits(shell):
    agent = shell.agent(shell.deletes, tools=("delete_file",))
    shell("run", "Tidy", "--agent", agent, "--id", "one")

    forked = shell("fork", "one", "--at", "1", "--goal", "Tidy", "--id", "two")

    assert (3, True) == (forked.exit_code, (shell.folder / "work-two").is_dir())
