"""Settings at the shell: found, shown, refused, and recorded with their source."""

import json

import pytest


@pytest.fixture
def agent(shell):
    return shell.agent(shell.two_turns, tools=("list_files",))


def run(shell, agent, *more):
    return shell("run", "Hi", "--agent", agent, "--inline", "--id", "one", *more)


def settings(shell, text, folder="."):
    (shell.folder / folder / "cueline.toml").write_text(text)


def sources(shell):
    first, *_ = shell("export", "one", "--format", "events").stdout.splitlines()
    return json.loads(first)["fact"]["agent"]["limit_sources"]


def test_each_source_of_a_session_is_recorded_with_its_agent(shell, agent, monkeypatch):
    """000-048, 000-061, 004-064."""
    settings(shell, "[limits]\nmax_turns = 9\nmax_output_tokens = 100\n[retry]\nfactor = 3\n")
    monkeypatch.setenv("CUELINE_MAX_OUTPUT_TOKENS", "200")
    monkeypatch.setenv("CUELINE_POLICY_IN_DOUBT", "tell")

    done = run(shell, agent, "--max-turns", "4")

    assert done.exit_code == 0
    limits = shell.json("export", "one")["limits"]
    assert (4, 200) == (limits["max_turns"], limits["max_output_tokens"])
    assert {
        "limits.max_turns": "flag --max-turns",
        "limits.max_output_tokens": "environment CUELINE_MAX_OUTPUT_TOKENS",
        "policy.in_doubt": "environment CUELINE_POLICY_IN_DOUBT",
        "retry.factor": "cueline.toml",
        "provider": "agent.toml",
        "model": "agent.toml",
    } == sources(shell)


@pytest.mark.parametrize(
    ("typed", "key", "kept"),
    [
        (("--max-turns", "30"), "max_turns", 30),
        (("--max-tokens", "50000"), "max_tokens", 50_000),
        (("--max-cost", "2.50"), "max_cost", "2.50"),
        (("--time-budget", "15m"), "max_active_seconds", 900.0),
        (("--max-wall", "2h"), "max_wall_seconds", 7200.0),
    ],
)
def test_each_limit_has_a_flag(shell, agent, typed, key, kept):
    """000-061, 000-062, 003-010, 003-011: a price list says what the scripted model costs."""
    with (shell.folder / agent).open("a") as file:
        file.write('[prices."scripted/*"]\ninput = 0\noutput = 0\n')

    assert run(shell, agent, *typed).exit_code == 0

    limits = shell.json("export", "one")["limits"]
    assert (kept, f"flag {typed[0]}") == (limits[key], limits["sources"][key])


@pytest.mark.parametrize(
    "flag", ["--max-turns", "--max-tokens", "--max-cost", "--time-budget", "--max-wall"]
)
def test_a_limit_that_is_none_is_refused_by_its_flag(shell, agent, flag):
    done = run(shell, agent, flag, "0")

    assert done.exit_code == 2
    assert f"{flag}: 0 is " in done.stderr
    assert not shell.log.exists()


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["costs", "--limit", "0"], "'--limit': 0 is less than 1"),
        (["costs", "--by", "foo"], "'--by': 'foo' is not one of 'session', 'agent', "),
        (["run", "Hi", "-a", "x", "--max-turns", "abc"], "'--max-turns': 'abc' is no whole number"),
    ],
)
def test_a_word_that_an_option_cannot_take_is_named(shell, words, told):
    done = shell(*words)

    assert (2, True) == (done.exit_code, told in done.stderr), done.stderr


def test_a_resumed_session_keeps_the_settings_that_it_was_started_with(shell, agent, monkeypatch):
    """000-048: they are facts."""
    assert run(shell, agent, "--max-turns", "1").exit_code == 3
    monkeypatch.setenv("CUELINE_MAX_TURNS", "40")
    settings(shell, "[limits]\nmax_output_tokens = 1\n")

    assert shell("resume", "one", "--inline").exit_code == 0

    limits = shell.json("export", "one")["limits"]
    assert (1, 8192) == (limits["max_turns"], limits["max_output_tokens"])


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "max_turns = 5",
            "cueline.toml: key 'max_turns': it is unknown: did you mean 'limits.max_turns'? Known",
        ),
        (
            "[limits]\nmax_turns = 'x'",
            "cueline.toml: key 'limits.max_turns': 'x' is no whole number",
        ),
        ("[limits", "cueline.toml: it is not TOML: "),
    ],
)
def test_a_wrong_file_is_refused_at_the_start_and_nothing_is_recorded(shell, agent, text, told):
    """004-063: with the file, the key and the reason."""
    settings(shell, text)

    done = run(shell, agent)

    assert done.exit_code == 2
    assert told in done.stderr
    assert not shell.log.exists()


def test_a_wrong_variable_is_refused_by_any_command(shell, monkeypatch):
    monkeypatch.setenv("CUELINE_MAX_TURN", "4")

    done = shell("list")

    assert (2, True) == (done.exit_code, "nearest is CUELINE_MAX_TURNS" in done.stderr)


def test_help_is_told_whatever_is_set(shell, monkeypatch):
    monkeypatch.setenv("CUELINE_MAX_TURN", "4")

    assert 0 == shell("run", "--help").exit_code


def test_the_file_of_a_folder_above_names_the_log_beside_itself(shell, agent, monkeypatch):
    """004-061."""
    settings(shell, 'log = "kept/sessions.db"')
    (shell.folder / ".git").mkdir()
    (shell.folder / "inside").mkdir()
    monkeypatch.chdir(shell.folder / "inside")

    done = run(shell, "../agent.toml")

    assert done.exit_code == 0
    assert (shell.folder / "kept/sessions.db").exists()
    assert ["one"] == [each["id"] for each in shell.json("list")]
    assert 0 == shell("audit", "verify").exit_code


def test_the_log_of_a_flag_or_variable_goes_before_that_of_the_file(shell, agent, monkeypatch):
    settings(shell, 'log = "three.db"')

    assert 0 == run(shell, agent, "--log", "one.db").exit_code
    monkeypatch.setenv("CUELINE_LOG", "two.db")
    assert 0 == run(shell, agent).exit_code

    assert [True, True, False] == [
        (shell.folder / f"{n}.db").exists() for n in ("one", "two", "three")
    ]


def test_an_empty_variable_is_none(shell, agent, monkeypatch):
    """As in `CUELINE_LOG= cueline list`: what is set to nothing is not set."""
    monkeypatch.setenv("CUELINE_LOG", "")
    monkeypatch.setenv("CUELINE_MAX_TURNS", "")

    assert 0 == run(shell, agent).exit_code

    assert shell.log.exists()


def test_a_file_can_be_named_and_then_no_other_is_read(shell):
    settings(shell, "nonsense = 1")
    (shell.folder / "mine.toml").write_text("[limits]\nmax_turns = 3\n")

    done = shell("--config", "mine.toml", "config", "show")

    assert done.exit_code == 0
    assert "mine.toml" in done.stdout


def test_a_named_file_that_is_missing_is_refused(shell, monkeypatch):
    monkeypatch.setenv("CUELINE_CONFIG", "none.toml")

    assert "none.toml: there is no such settings file" in shell("list").stderr


def test_the_settings_are_shown_with_their_sources(shell, agent, monkeypatch):
    """004-078."""
    settings(shell, "[limits]\nmax_turns = 9\nmax_output_tokens = 100\n")
    monkeypatch.setenv("CUELINE_MAX_TURNS", "7")

    shown = shell.json("config", "show", "--agent", agent)["settings"]

    assert (7, "environment CUELINE_MAX_TURNS") == (
        shown["limits.max_turns"]["value"],
        shown["limits.max_turns"]["source"],
    )
    assert "cueline.toml" == shown["limits.max_output_tokens"]["source"]
    assert "agent.toml" == shown["provider"]["source"]
    assert "default" == shown["retry.factor"]["source"]
    assert "limits.max_turns" in shell("config", "show", "--set").stdout
    assert "retry.factor" not in shell("config", "show", "--set").stdout


def test_an_agent_takes_its_provider_from_the_settings(shell):
    agent = shell.agent(shell.hello)
    (shell.folder / agent).write_text('name = "clerk"\n')
    settings(shell, 'provider = "scripted"\nmodel = "script.toml"\n')

    assert "Good evening." in run(shell, agent).stdout


def test_an_approval_waits_as_long_as_the_settings_say(shell):
    """D10, 004-060."""
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=shell.reachable)
    (shell.folder / "work" / "list.txt").write_text("Ada\n")
    settings(shell, '[approval]\ndetached_seconds = "2h"\n')

    assert run(shell, agent).exit_code == 3

    assert 7200.0 == shell.json("export", "one")["policy"]["approval_seconds"]


# Nobody can mend the policy of a fork: what takes longer than is set here would never come.
def test_a_fork_waits_as_long_as_its_policy_takes(shell):
    policy = f"[policy]\nauto_approve_after = 600\n{shell.reachable}"
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=policy)
    (shell.folder / "work" / "list.txt").write_text("Ada\n")
    run(shell, agent)
    settings(shell, '[approval]\ndetached_seconds = "1m"\n')

    done = shell("fork", "one", "--at", "1", "--id", "two", "--inline")

    assert 3 == done.exit_code, done.output
    assert 86400.0 == shell.json("export", "two")["policy"]["approval_seconds"]


def test_require_approval_goes_before_a_file_that_says_off(shell):
    """000-023."""
    policy = '[policy]\napproval = "off"\nhooks = [{ on = "asked", command = ["true"] }]\n'
    agent = shell.agent(shell.deletes, tools=("delete_file",), more=policy)
    (shell.folder / "work" / "list.txt").write_text("Ada\n")

    assert run(shell, agent, "--require-approval").exit_code == 3

    assert ["sensitive"] == shell.json("export", "one")["policy"]["approval"]
    assert "flag --require-approval" == sources(shell)["policy.approval"]


def test_a_secret_that_the_settings_name_is_not_recorded(shell, monkeypatch):
    """I11: `secrets` of the settings are added to those of the agent."""
    monkeypatch.setenv("TEAM_TOKEN", "t0ken-of-the-team")
    agent = shell.agent(shell.hello.replace("Good evening.", "It is t0ken-of-the-team."))
    settings(shell, 'secrets = ["TEAM_TOKEN"]')

    done = run(shell, agent)

    assert "It is [redacted]." in done.stdout
    assert b"t0ken-of-the-team" not in shell.log.read_bytes()


def test_a_fork_keeps_how_long_the_agents_file_has_questions_wait(shell):
    told = shell.agent(shell.hello, more="[policy]\napproval_seconds = 1800\n")
    shell("run", "Hi", "--agent", told, "--inline", "--id", "one")
    done = shell("fork", "one", "--at", "1", "--goal", "Again", "--id", "two", "--inline")

    assert done.exit_code == 0, done.output
    assert 1800.0 == shell.json("export", "two")["policy"]["approval_seconds"]


def test_what_another_table_decides_is_not_shown_as_if_it_held(shell, agent, monkeypatch):
    """A default that is never used would be a lie about how long a question waits."""

    def said():
        return shell.json("config", "show", "--agent", agent)["settings"]["policy.approval_seconds"]

    assert (None, "[approval] decides") == (said()["value"], said()["source"])
    assert "policy.approval_seconds" not in shell("config", "show", "--set").stdout
    monkeypatch.setenv("CUELINE_POLICY_APPROVAL_SECONDS", "15m")
    assert 900.0 == said()["value"]


def test_a_setting_is_shown_without_what_a_terminal_would_obey(shell):
    settings(shell, 'model = "a\\u001b[2Jb"\n')

    assert "a\\x1b[2Jb" in shell("config", "show", "--set").stdout
