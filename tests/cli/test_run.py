"""`cueline run --inline`: what is checked first, what is shown, how it ends."""

import asyncio
import json

import pytest

from cueline import Agent, open_runtime


def test_a_run_shows_replies_calls_results_and_costs(shell):
    agent = shell.agent(shell.two_turns, tools=("list_files",))
    (shell.folder / "work" / "guests.txt").touch()

    done = shell("run", "Look around", "--agent", agent, "--inline", "--id", "one")

    assert done.exit_code == 0
    told = [line for line in done.stdout.splitlines() if line]
    assert told[:3] == [
        "session one · clerk · scripted script.toml",
        "you: Look around",
        "I will look.",
    ]
    assert told[3].startswith("  turn 1 · 100 in + 20 out tokens · $0")
    assert told[4] == "▸ 1.0 list_files"
    assert told[5].startswith("✓ 1.0 list_files · ")
    assert "guests.txt" in told[6]
    assert told[7] == "There is nothing."
    assert told[9] == "completed"
    assert told[10].startswith(
        "session one: completed · 2 turns · 1 tool call · 250 in + 30 out tokens · $0 · "
    )


def test_a_run_ends_with_one_document_for_programs(shell):
    """000-032."""
    agent = shell.agent(shell.two_turns, tools=("list_files",))

    document = shell.json("run", "Look", "--agent", agent, "--inline", "--id", "one")

    assert document == {
        "id": "one",
        "status": "completed",
        "result": "There is nothing.",
        "partial": False,
        "error": None,
        "waiting": None,
        "turns": 2,
        "tool_calls": 1,
        "tokens": {"input": 250, "output": 30, "cache_read": 0, "cache_write": 0},
        "cost_usd": "0",
        "version": document["version"],
    }


def test_the_document_of_a_run_that_failed_says_why(shell):
    agent = shell.agent('[[reply]]\nfail = { kind = "refused", message = "no such thing" }\n')

    document = shell.json("run", "Hi", "--agent", agent, "--inline", "--id", "one")

    assert ("failed", "refused") == (document["status"], document["error"]["kind"])
    assert "no such thing" in document["error"]["message"]
    assert shell.json("export", "one")["error"] == document["error"]


def test_the_id_shown_is_the_id_recorded(shell):
    """D3: one id from end to end."""
    document = shell.json("run", "Hi", "--agent", shell.agent(shell.hello), "--inline")

    assert "SessionCompleted" in shell.types(document["id"])
    assert shell.json("list")[0]["id"] == document["id"]


MISTAKES = {
    "no such agent file": ("", ["--agent", "nobody.toml"], "nobody.toml: there is no such agent"),
    "a typo in a key": ("instuctions = 'x'", [], "key 'instuctions': it is unknown"),
    "a typo in a table": (
        "[limits]\nmaxturns = 3",
        [],
        "key 'limits.maxturns': it is unknown; did you mean 'limits.max_turns'?",
    ),
    "not TOML": ("= 1", [], "it is not TOML"),
    "an unknown provider": ("PROVIDER", [], "'openia' is unknown; known are anthropic, scripted"),
    "no key": ("ANTHROPIC", [], "ANTHROPIC_API_KEY"),
    "no script": ("SCRIPT", [], "model` names the script of a scripted agent"),
    "an unknown tool": ("TOOL", [], "tool 'teleport' is unknown; shipped are"),
    "a tool that cannot be imported": ("IMPORT", [], "nowhere"),
    "no such workspace": ("", ["--workspace", "gone"], "the workspace is not a folder"),
    "a label of another form": ("", ["--label", "urgent"], "'urgent' is not KEY=VALUE"),
    "an id of another form": ("", ["--id", "Not An Id"], "an id is letters a-z and digits"),
    "nothing to do": ("", [], "say something"),
}
CHANGES = {
    "PROVIDER": ("scripted", "openia"),
    "ANTHROPIC": ('provider = "scripted"', 'provider = "anthropic"'),
    "SCRIPT": ("script.toml", "missing.toml"),
    "TOOL": ("tools = []", 'tools = ["teleport"]'),
    "IMPORT": ("tools = []", 'tools = ["nowhere.at_all:tool"]'),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_named_before_anything_is_recorded(shell, mistake):
    more, words, named = MISTAKES[mistake]
    agent = shell.agent(shell.hello, more="" if more in CHANGES else more)
    if more in CHANGES:
        file = shell.folder / agent
        file.write_text(file.read_text().replace(*CHANGES[more]))
    goal = "" if mistake == "nothing to do" else "Hi"

    done = shell("run", goal, "--agent", agent, "--inline", *words)

    assert done.exit_code == 2
    assert named in done.stderr
    assert done.stderr.startswith("error: ")
    assert "Traceback" not in done.output
    assert not shell.log.exists()


def test_tools_that_need_a_folder_are_refused_without_one(shell):
    agent = shell.agent(shell.two_turns, tools=("list_files",))
    file = shell.folder / agent
    file.write_text(file.read_text().replace('workspace = "work"\n', ""))

    done = shell("run", "Hi", "--agent", agent, "--inline")

    assert done.exit_code == 2
    assert "list_files need one; name a folder with --workspace" in done.stderr
    assert not shell.log.exists()


def test_an_id_is_taken_once(finished):
    done = finished("run", "Hi", "--agent", "agent.toml", "--inline", "--id", "one")

    assert done.exit_code == 2
    assert "one: there is a session of this id" in done.stderr


def test_an_inline_run_cannot_be_detached(shell):
    done = shell("run", "Hi", "--agent", shell.agent(shell.hello), "--inline", "--detach")

    assert done.exit_code == 2


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

    done = shell("run", "Tidy", "--agent", agent, "--inline")

    assert done.exit_code == 0


def test_approval_can_be_required_whatever_the_file_says(shell):
    """000-023."""
    more = f'[policy]\napproval = "off"\n{shell.reachable}'
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=more)

    done = shell("run", "Tidy", "--agent", agent, "--inline", "--require-approval")

    assert done.exit_code == 3


def test_a_limit_of_turns_pauses_and_says_where_it_came_from(shell):
    agent = shell.agent(shell.two_turns, tools=("list_files",))

    done = shell("run", "Hi", "--agent", agent, "--inline", "--id", "one", "--max-turns", "1")

    assert done.exit_code == 3
    assert "session one: paused" in done.stdout
    limits = shell.json("export", "one")["limits"]
    assert (limits["max_turns"], limits["sources"]) == (1, {"max_turns": "flag --max-turns"})


def test_an_open_session_stays_for_more_messages(shell):
    script = f'{shell.hello}\n[[reply]]\ntext = "Still here."\n'
    agent = shell.agent(script)

    first = shell("run", "Hi", "--agent", agent, "--inline", "--id", "one", "--open")
    sent = shell("send", "one", "And now?")
    second = shell("resume", "one", "--inline")

    assert (0, 0, 0) == (first.exit_code, sent.exit_code, second.exit_code)
    assert "session one: idle" in first.stdout
    assert "cueline send one TEXT" in first.stdout
    assert "you: And now?\nStill here.\n" in second.stdout


def test_a_session_that_cannot_go_on_fails(shell):
    agent = shell.agent('[[reply]]\nfail = { kind = "invalid_request", message = "no" }\n')

    done = shell("run", "Hi", "--agent", agent, "--inline")

    assert done.exit_code in {1, 3}
    assert "no" in done.stdout


def test_what_an_agent_says_cannot_steer_the_terminal(shell):
    agent = shell.agent('[[reply]]\ntext = "\\u001b[2Jboo \\u202etxt.exe"\n')

    done = shell("run", "Hi", "--agent", agent, "--inline")

    assert "\x1b" not in done.stdout
    assert "\\x1b[2Jboo \\x202etxt.exe" in done.stdout


def test_no_secret_is_recorded_or_shown(shell, monkeypatch):
    monkeypatch.setenv("TEA_TOKEN", "oolong-4711-jasmine")
    agent = shell.agent(shell.hello, more='secrets = ["TEA_TOKEN"]\n')

    done = shell("run", "Use oolong-4711-jasmine", "--agent", agent, "--inline", "--id", "one")

    assert done.exit_code == 0
    assert "oolong" not in done.output
    assert b"oolong" not in shell.log.read_bytes()
    assert "you: Use [redacted]" in done.stdout


def test_the_goal_can_be_piped_in(shell):
    agent = shell.agent(shell.hello)

    done = shell("run", "-", "--agent", agent, "--inline", typed="Read this\n")

    assert "you: Read this\n" in done.stdout


def test_a_log_in_the_reach_of_the_tools_is_warned_of(shell):
    agent = shell.agent(shell.hello)

    done = shell("run", "Hi", "--agent", agent, "--inline", "--workspace", ".")

    assert done.exit_code == 0
    assert "is inside the workspace" in done.stderr


def test_labels_are_listed(shell):
    words = ["--label", "team=search", "--label", "day=mon"]
    shell("run", "Hi", "--agent", shell.agent(shell.hello), "--inline", *words)

    assert {"team": "search", "day": "mon"} == shell.json("list")[0]["labels"]


def test_a_detached_run_is_recorded_and_says_what_is_missing(shell):
    agent = shell.agent(shell.hello)

    done = shell("run", "Hi", "--agent", agent, "--detach", "--id", "one")

    assert (0, "one\n") == (done.exit_code, done.stdout)
    assert "nothing runs that would take it up: `cueline up`" in done.stderr
    assert "created" == shell.json("list")[0]["status"]
    assert json.loads(shell("run", "Hi", "--agent", agent, "--detach", "--json").stdout)["id"]


def test_a_detached_session_can_be_driven_later(shell):
    shell("run", "Hi", "--agent", shell.agent(shell.hello), "--detach", "--id", "one")

    done = shell("resume", "one", "--inline")

    assert done.exit_code == 0
    assert "Good evening." in done.stdout


@pytest.mark.parametrize("words", [("--address", "127.0.0.1:1"), ("--address", "ray://here:1")])
def test_a_run_that_finds_no_cluster_records_nothing(shell, words):
    agent = shell.agent(shell.hello)

    done = shell("run", "Hi", "--agent", agent, "--id", "one", *words)

    assert done.exit_code == 2
    assert f"error: {words[1]}: " in done.stderr
    assert "nothing was recorded; with --inline it needs no Ray\n" in done.stderr
    assert [] == shell.json("list")


def test_what_goes_on_with_a_session_records_nothing_without_a_cluster(asking):
    """Neither a resume nor a fork, nor the fork's copy of the workspace."""
    asking("pause", "one")
    before = asking("audit").stdout
    nowhere = ("--address", "127.0.0.1:1")

    resumed = asking("resume", "one", *nowhere)
    forked = asking("fork", "one", "--at", "4", *nowhere)

    assert (2, 2) == (resumed.exit_code, forked.exit_code)
    assert before == asking("audit").stdout
    assert not list(asking.folder.glob("work-*"))


def test_an_agent_that_would_ask_is_refused_where_nobody_can_be_asked(shell):
    """D36; before anything is recorded, with what to do."""
    agent = shell.agent(shell.deletes, tools=("delete_file",))

    done = shell("run", "Tidy", "--agent", agent, "--inline", "--id", "one")

    assert done.exit_code == 2
    assert "it asks before it calls delete_file, and nobody can be asked here" in done.stderr
    assert all(way in done.stderr for way in ("terminal", "--detach", "hook", "--auto-approve"))
    assert not shell.log.exists()


def test_a_resume_is_refused_likewise_and_a_fork_that_asks_nobody_is_not(shell):
    """D36."""
    agent = shell.agent(shell.deletes, tools=("delete_file",))
    shell("run", "Tidy", "--agent", agent, "--detach", "--id", "one")
    shell("run", "Tidy", "--agent", agent, "--inline", "--auto-approve", "--id", "two")

    resumed = shell("resume", "one", "--inline")

    assert (2, True) == (resumed.exit_code, "nobody can be asked here" in resumed.stderr)
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
