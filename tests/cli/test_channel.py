"""Who is asked by a run, and that nothing begins where nobody can be asked."""

import asyncio
from datetime import UTC, datetime

from cueline import Agent, open_runtime
from cueline.actors.inbox import ask_start
from cueline.events.inbox import StartAsked
from cueline.preflight import recorded
from cueline.wiring import open_log


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
    assert "  cueline resume one --inline --log my.db\n" in done.stdout


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


def test_an_agent_that_would_ask_is_refused_where_nobody_can_be_asked(shell):
    """D36; before anything is recorded, with what to do."""
    agent = shell.agent(shell.deletes, tools=("delete_file",))

    done = shell("run", "Tidy", "--agent", agent, "--inline", "--id", "one")

    assert done.exit_code == 2
    assert "it asks before it calls delete_file, and nobody can be asked here" in done.stderr
    assert all(way in done.stderr for way in ("terminal", "--detach", "hook", "--auto-approve"))
    assert not shell.log.exists()


async def started_at_a_terminal(agent):
    """Record the wish for a session `one`, which asks whoever sits there."""
    spec = recorded(Agent.from_file(agent))
    asked = StartAsked(agent=spec, goal="Tidy", attached=True, asked_at=datetime.now(UTC))
    async with open_log() as log:
        await ask_start(log.journal(), "one", asked)


def test_a_resume_is_refused_likewise_where_the_start_had_a_terminal(shell):
    """D36; and nothing is recorded."""
    agent = shell.agent(shell.deletes, tools=("delete_file",))
    asyncio.run(started_at_a_terminal(agent))
    before = shell("audit").stdout
    assert "StartAsked" in before

    resumed = shell("resume", "one", "--inline")

    assert (2, True) == (resumed.exit_code, "nobody can be asked here" in resumed.stderr)
    assert before == shell("audit").stdout


def test_a_resume_needs_no_channel_where_the_start_had_one_of_its_own(shell):
    """D36: what was started with `--detach` is answered from any shell."""
    agent = shell.agent(shell.deletes, tools=("delete_file",))
    shell("run", "Tidy", "--agent", agent, "--detach", "--id", "one")
    (shell.folder / "work" / "list.txt").touch()

    asked = shell("resume", "one", "--inline")
    approved = shell("approve", "one.1.0.1")
    resumed = shell("resume", "one", "--inline")

    assert [3, 0, 0] == [each.exit_code for each in (asked, approved, resumed)]
    assert not (shell.folder / "work" / "list.txt").exists()


def test_a_fork_that_asks_nobody_needs_no_channel(shell):
    """D36."""
    agent = shell.agent(shell.deletes, tools=("delete_file",))
    shell("run", "Tidy", "--agent", agent, "--inline", "--auto-approve", "--id", "two")

    assert 0 == shell("fork", "two", "--at", "3", "--inline").exit_code


async def asked_in_python(agent):
    """Drive a session `one` up to its question, which a program may answer."""
    async with open_runtime(on="inline") as here:
        await (await here.start(Agent.from_file(agent), "Tidy", id="one")).result()


def test_a_fork_of_an_agent_that_would_ask_records_nothing_where_nobody_can_be_asked(shell):
    """D36; and it copies no workspace."""
    asyncio.run(asked_in_python(shell.agent(shell.deletes, tools=("delete_file",))))
    before = shell("audit").stdout

    forked = shell("fork", "one", "--at", "4", "--inline")

    assert forked.exit_code == 2
    assert "it asks before it calls delete_file, and nobody can be asked here" in forked.stderr
    assert before == shell("audit").stdout
    assert not list(shell.folder.glob("work-*"))


def test_a_hook_that_tells_of_no_question_reaches_nobody_who_could_answer(shell):
    more = shell.reachable.replace("asked", "notify")
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=more)

    done = shell("run", "Tidy", "--agent", agent, "--inline", "--id", "one")

    assert 2 == done.exit_code
    assert "nobody can be asked here" in done.stderr
