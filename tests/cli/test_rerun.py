"""A past that is run again from the shell: what it says, and with which exit code it ends."""

DENY = '[[policy.rules]]\nname = "closed"\nanswer = "deny"\ntools = ["list_files"]\n'


def test_a_rerun_with_the_recorded_agent_shows_no_difference(finished):
    done = finished("rerun", "one", "--inline", "--id", "two")

    assert (done.exit_code, done.stdout.splitlines()[-2:]) == (
        0,
        ["two: 2 of 2 recorded turns of one; 1 result from the recording", "no difference"],
    )


def test_a_rerun_with_other_rules_names_the_first_difference(finished):
    agent = finished.agent(finished.two_turns, tools=("list_files",), more=DENY)

    done = finished("rerun", "one", "--agent", agent, "--inline")

    assert done.exit_code == 1
    assert done.stdout.splitlines()[-3:] == [
        "the first difference: turn 1, judgement of list_files 1.0",
        "  recorded: allow (rule not sensitive)",
        "  now:      deny (rule closed)",
    ]


def test_a_rerun_needs_no_workspace_and_no_key(finished):
    (finished.folder / "work").rmdir()
    agent = finished.agent(finished.two_turns, tools=("list_files",), more="")
    text = (finished.folder / agent).read_text()
    (finished.folder / agent).write_text(text.replace('"scripted"', '"anthropic"'))
    (finished.folder / "work").rmdir()

    done = finished("rerun", "one", "--agent", agent, "--inline")

    assert (done.exit_code, done.stdout.splitlines()[-1]) == (0, "no difference")


def test_a_call_without_a_recorded_result_says_what_runs_it(shell):
    agent = shell.agent(shell.two_turns, tools=("list_files",), more=DENY)
    shell("run", "Look around", "--agent", agent, "--inline", "--id", "one")
    agent = shell.agent(shell.two_turns, tools=("list_files",))

    done = shell("rerun", "one", "--agent", agent, "--inline", "--id", "two")
    found = shell.json("rerun", "one", "--agent", agent, "--inline", "--run-tools")

    assert done.exit_code == 1
    assert done.stdout.splitlines()[-3:] == [
        "stopped at turn 1: no recorded result of list_files {}",
        "run such calls, if the rules allow them, with",
        "  cueline rerun one --agent agent.toml --run-tools",
    ]
    assert (found["unanswered"], found["ran"], found["status"]) == (None, 1, "completed")


def test_a_rerun_is_not_detached(finished):
    done = finished("rerun", "one", "--detach")

    assert (done.exit_code, "--detach: a rerun is compared" in done.output) == (2, True)
