"""What a run checks before it records anything."""

import pytest

MISTAKES = {
    "no such agent file": ("", ["--agent", "nobody.toml"], "nobody.toml: there is no such agent"),
    "a typo in a key": ("instuctions = 'x'", [], "key 'instuctions': it is unknown"),
    "a typo in a table": (
        "[limits]\nmaxturns = 3",
        [],
        "key 'limits.maxturns': it is unknown: did you mean 'limits.max_turns'?",
    ),
    "not TOML": ("= 1", [], "it is not TOML"),
    "an unknown provider": ("PROVIDER", [], "'openia' is unknown: did you mean 'openai'?"),
    "no key": ("ANTHROPIC", [], "ANTHROPIC_API_KEY"),
    "no script": ("SCRIPT", [], "model` names the script of a scripted agent"),
    "an unknown tool": ("TOOL", [], "agent.toml: key 'tools': 'teleport' is unknown; there are"),
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
    assert "list_files; name a folder as its `workspace`, or with --workspace" in done.stderr
    assert not shell.log.exists()


def test_an_id_is_taken_once(finished):
    done = finished("run", "Hi", "--agent", "agent.toml", "--inline", "--id", "one")

    assert done.exit_code == 2
    assert "one: a session with this id exists" in done.stderr


def test_an_inline_run_cannot_be_detached(shell):
    done = shell("run", "Hi", "--agent", shell.agent(shell.hello), "--inline", "--detach")

    assert done.exit_code == 2
    assert not shell.log.exists()


@pytest.mark.parametrize("mode", ["--inline", "--detach"])
@pytest.mark.parametrize(
    "words",
    [("run", "Hi", "--agent", "agent.toml"), ("resume", "one"), ("fork", "one", "--at", "2")],
)
def test_an_address_is_refused_where_it_would_mean_nothing(asking, words, mode):
    before = asking.json("export", "one")

    done = asking(*words, "--address", "127.0.0.1:1", mode)

    assert done.exit_code == 2
    assert f"--address names a Ray that {mode} does not use; leave one out" in done.stderr
    assert ["one"] == [each["id"] for each in asking.json("list")]
    assert before == asking.json("export", "one")


def test_an_address_of_the_environment_is_for_other_commands(shell, monkeypatch):
    monkeypatch.setenv("RAY_ADDRESS", "127.0.0.1:1")

    done = shell("run", "Hi", "--agent", shell.agent(shell.hello), "--inline")

    assert done.exit_code == 0, done.output


@pytest.mark.parametrize("words", [("--address", "127.0.0.1:1"), ("--address", "ray://here:1")])
def test_a_run_that_finds_no_cluster_records_nothing(shell, words):
    agent = shell.agent(shell.hello)

    done = shell("run", "Hi", "--agent", agent, "--id", "one", *words)

    assert done.exit_code == 2
    assert f"error: {words[1]}: " in done.stderr
    assert "nothing was recorded; without --ray and --address it needs no Ray\n" in done.stderr
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


def test_a_run_with_a_key_that_was_used_shows_the_session_of_then(shell):
    agent = shell.agent(shell.hello)

    first = shell("run", "Hi", "--agent", agent, "--inline", "--key", "mail 7")
    again = shell("run", "Hi", "--agent", agent, "--inline", "--key", "mail 7")
    other = shell("run", "Bye", "--agent", agent, "--inline", "--key", "mail 7")

    assert (0, 0, 2) == (first.exit_code, again.exit_code, other.exit_code)
    assert 1 == len(shell.json("list"))
    assert "the key 'mail 7' started it with another goal; choose another key" in other.stderr
