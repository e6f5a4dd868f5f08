"""`cueline run` where nothing was written: the built-in agent, and a model that is there."""

import pytest

from cueline.isolation import ladder
from tests.local_server import calls, local_server, says

KEY = "sk-ant-newcomer-0123456789"


@pytest.fixture
def here(shell, monkeypatch):
    """A shell without keys, and with nothing at the address of a server without key."""
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:9")
    monkeypatch.delenv("OLLAMA_MODEL", raising=False)
    return shell


def serve(monkeypatch, server):
    monkeypatch.setenv("OLLAMA_HOST", f"127.0.0.1:{server.server_port}")


# 000-009: with no key, a server on this machine is used.
def test_without_a_key_a_server_of_this_machine_answers(here, monkeypatch):
    with local_server("tiny:latest", "huge:latest") as server:
        serve(monkeypatch, server)

        done = here("run", "Hello", "--inline", "--id", "one")

    assert 0 == done.exit_code, done.output
    assert "Good evening." in done.stdout
    (row,) = here.json("list")
    assert ("ollama", "tiny:latest", "default") == (row["provider"], row["model"], row["agent"])


def test_the_environment_names_another_of_its_models(here, monkeypatch):
    monkeypatch.setenv("OLLAMA_MODEL", "huge:latest")
    with local_server("tiny:latest", "huge:latest") as server:
        serve(monkeypatch, server)

        assert 0 == here("run", "Hello", "--inline").exit_code

    assert ["huge:latest"] == [each["model"] for each in server.asked]


@pytest.mark.parametrize("models", [None, ()])
def test_with_neither_it_says_in_two_lines_what_to_set(here, monkeypatch, models):
    with local_server(*(models or ())) as server:
        if models is not None:
            serve(monkeypatch, server)

        done = here("run", "Hello")

    assert 2 == done.exit_code
    first, second = done.stderr.splitlines()
    assert first.startswith("error: no model: no provider has a key here, and no server that ")
    assert second.startswith("set ANTHROPIC_API_KEY or run `cueline keys set anthropic`; ")
    assert second.endswith("without a key: install Ollama, and run `ollama pull qwen3`")
    assert not here.log.exists()


def test_the_built_in_agent_runs_no_commands_that_could_reach_its_log(
    here, monkeypatch, tmp_path_factory
):
    """Landlock cannot take the log out of the folder; another place of the log helps."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    monkeypatch.setattr(ladder.rung, "__defaults__", ((str(elsewhere),),))
    monkeypatch.setattr(ladder, "_PACKAGE", "no_such_package")
    if not ladder.rung().kind:
        pytest.skip("Landlock isolates nothing here")
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    outside = here("run", "Hello", "--detach", "--id", "two", "--log", elsewhere / "log.db")
    inside = here("run", "Hello", "--detach", "--id", "one")

    assert (0, 0) == (inside.exit_code, outside.exit_code)
    assert "the built-in agent runs no commands: " in inside.output
    assert f"{here.log} is in a granted folder" in inside.output.replace("\n", " ")
    assert "runs no commands" not in outside.output


# 002-005: the default provider goes first, and has its own default model.
@pytest.mark.parametrize(
    ("variables", "provider"),
    [
        (["OPENAI_API_KEY", "ANTHROPIC_API_KEY"], "anthropic"),
        (["OPENAI_API_KEY"], "openai"),
    ],
)
def test_a_provider_with_a_key_goes_before_a_server_without(here, monkeypatch, variables, provider):
    for name in variables:
        monkeypatch.setenv(name, KEY)
    with local_server("tiny:latest") as server:
        serve(monkeypatch, server)

        assert 0 == here("run", "Hello", "--detach", "--id", "one").exit_code

    agent = started(here)
    assert provider == agent["provider"]
    assert agent["model"].startswith({"anthropic": "claude-", "openai": "gpt-"}[provider])


def test_a_stored_key_counts_as_well(here):
    here("keys", "set", "anthropic", typed=KEY)

    assert 0 == here("run", "Hello", "--detach", "--id", "one").exit_code

    assert "anthropic" == started(here)["provider"]


def started(shell):
    (row,) = shell.json("list")
    return row


# The built-in agent reads at once, and asks before it writes or runs a command.
@pytest.mark.parametrize(
    ("call", "code"),
    [
        (calls("list_files"), 0),
        (calls("read_file", path="note.txt"), 0),
        (calls("write_file", path="note.txt", content="new"), 3),
        (calls("delete_file", path="note.txt"), 3),
        (calls("run_command", command="rm note.txt"), 3),
    ],
)
def test_the_built_in_agent_asks_before_it_changes_anything(here, monkeypatch, call, code):
    (here.folder / "note.txt").write_text("Buy milk.\n")
    with local_server("tiny", replies=[call, says("Done.")]) as server:
        serve(monkeypatch, server)

        done = here("run", "Do it", "--agent", "default", "--inline", "--id", "one")

    assert code == done.exit_code, done.output
    assert "Buy milk.\n" == (here.folder / "note.txt").read_text()
    assert len(server.asked) == (2 if code == 0 else 1)


def test_an_approved_change_of_the_built_in_agent_is_made(here, monkeypatch):
    replies = [calls("write_file", path="note.txt", content="new"), says("Done.")]
    with local_server("tiny", replies=replies) as server:
        serve(monkeypatch, server)
        assert 3 == here("run", "Do it", "--inline", "--id", "one").exit_code

        assert 0 == here("approve", "one.1.0.1").exit_code
        assert 0 == here("resume", "one", "--inline").exit_code

    assert "new" == (here.folder / "note.txt").read_text()


def test_the_settings_name_the_model_of_the_built_in_agent(here):
    (here.folder / "cueline.toml").write_text(
        'provider = "scripted"\nmodel = "hello.toml"\n[limits]\nmax_turns = 3\n'
    )
    (here.folder / "hello.toml").write_text(here.hello)

    done = here("run", "Hello", "--inline")

    assert 0 == done.exit_code, done.output
    assert "Good evening." in done.stdout


# 002-007: each user has a provider, a model and an address of their own.
def test_a_users_own_model_and_address_go_before_those_for_all(here, monkeypatch):
    here.own_settings(
        'provider = "anthropic"\nmodel = "claude-for-all"\n'
        '[users.ann]\nprovider = "openai"\nmodel = "hers"\nbase_url = "http://127.0.0.1:1/v1"\n'
        '[users.bob]\nmodel = "claude-for-bob"\n'
    )
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    found = []
    for user in ("ann", "bob", "eve"):
        monkeypatch.setenv("LOGNAME", user)
        assert 0 == here("run", "Hello", "--detach", "--id", user).exit_code
        found.append(settings(here))

    assert [
        ("openai", "hers", "http://127.0.0.1:1/v1"),
        ("anthropic", "claude-for-bob", None),
        ("anthropic", "claude-for-all", None),
    ] == found
    rows = {each["id"]: each for each in here.json("list")}
    assert ["hers", "claude-for-bob", "claude-for-all"] == [
        rows[user]["model"] for user in ("ann", "bob", "eve")
    ]


def settings(shell):
    held = shell.json("config", "show", "--agent", "default")["settings"]
    return tuple(held[key]["value"] for key in ("provider", "model", "base_url"))
