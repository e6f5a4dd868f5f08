"""What a shell says that lacks a secret, and how a host cleans it that knows the secret (I11)."""

import pytest

CANARY = "oolong-4711-jasmine"
REPLIES = """
[[reply]]
text = "Yes?"

[[reply]]
text = "I see."

[[reply]]
text = "I do."
"""


@pytest.fixture
def told(shell, monkeypatch):
    """A session that was told a secret where nobody knows it, short and long, and read that."""
    agent = shell.agent(REPLIES, more='secrets = ["TEA_TOKEN"]\n')
    monkeypatch.setenv("TEA_TOKEN", CANARY)
    shell("run", "Hi", "--agent", agent, "--inline", "--id", "one", "--open")
    monkeypatch.delenv("TEA_TOKEN")
    for padding in ("", "x" * 20_000):
        assert 0 == shell("send", "one", f"It is {CANARY} {padding}").exit_code
    assert CANARY.encode() in shell.log.read_bytes()
    monkeypatch.setenv("TEA_TOKEN", CANARY)
    done = shell("resume", "one", "--inline")
    assert 0 == done.exit_code
    return shell


def test_it_is_not_shown_where_it_is_known(shell, monkeypatch):
    agent = shell.agent(REPLIES, more='secrets = ["TEA_TOKEN"]\n')
    monkeypatch.setenv("TEA_TOKEN", CANARY)
    shell("run", "Hi", "--agent", agent, "--inline", "--id", "one", "--open")
    monkeypatch.delenv("TEA_TOKEN")
    shell("send", "one", f"It is {CANARY}")
    monkeypatch.setenv("TEA_TOKEN", CANARY)

    assert "note: It is [redacted]" in shell("show", "one").stdout


def test_it_is_in_no_file_any_more_once_a_host_has_read_it(told):
    kept = {each.name: each.read_bytes() for each in told.log.parent.iterdir()}

    assert {} == {name: held for name, held in kept.items() if CANARY.encode() in held}
    assert "It is [redacted] xxx" in told("show", "one").stdout


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "verify"),
        ("replay", "one", "--check"),
        ("export", "one", "--format", "events"),
        ("tail", "one"),
        ("audit", "--json"),
        ("resume", "one", "--inline"),
    ],
    ids=" ".join,
)
def test_the_log_is_whole_without_it(told, words):
    done = told(*words)

    assert (0, "") == (done.exit_code, done.stderr)


def test_a_message_that_was_emptied_before_it_was_read_is_named(shell):
    shell("run", "Hi", "--agent", shell.agent(REPLIES), "--inline", "--id", "one", "--open")
    shell("send", "one", "Nobody reads this.")
    shell.change("UPDATE events SET payload = NULL, salt = NULL WHERE type = ?", "MessageSent")

    done = shell("audit", "verify")

    assert 1 == done.exit_code
    assert "inbox-default/one@2 (position" in done.stdout


@pytest.fixture
def careful(shell):
    """A shell with the file of an agent that names a secret which is not set here."""
    shell.agent(REPLIES, more='secrets = ["TEA_TOKEN"]\n')
    return shell


def run(shell, *more):
    return shell("run", "Hi", "--agent", "agent.toml", "--inline", "--id", "one", "--open", *more)


def test_a_session_is_not_started_where_a_secret_is_not_set(careful):
    done = run(careful)

    assert 2 == done.exit_code
    assert "TEA_TOKEN: is not set here, so its value cannot be kept out of the log" in done.stderr
    assert "--without-secret TEA_TOKEN" in done.stderr
    assert not careful.log.exists()


def test_a_session_is_started_without_a_secret_where_a_person_says_so(careful):
    done = run(careful, "--without-secret", "TEA_TOKEN")

    assert 0 == done.exit_code
    assert "goes on without the value of TEA_TOKEN" in done.stdout
    assert 0 == careful("resume", "one", "--inline").exit_code
    assert 0 == careful("replay", "one", "--check").exit_code


@pytest.mark.parametrize("command", [("resume", "one"), ("fork", "one", "--at", "3")])
def test_nobody_goes_on_where_a_secret_is_not_set_any_more(careful, monkeypatch, command):
    monkeypatch.setenv("TEA_TOKEN", CANARY)
    run(careful)
    monkeypatch.delenv("TEA_TOKEN")

    refused = careful(*command, "--inline")
    done = careful(*command, "--inline", "--without-secret", "TEA_TOKEN")

    assert 2 == refused.exit_code
    assert "TEA_TOKEN: is not set here" in refused.stderr
    assert 0 == done.exit_code, done.output
    assert "goes on without the value of TEA_TOKEN" in done.stdout


def test_what_is_no_secret_of_the_agent_cannot_be_waived(careful):
    done = run(careful, "--without-secret", "TEA_TOKEN", "--without-secret", "COFFEE_TOKEN")

    assert 2 == done.exit_code
    assert "COFFEE_TOKEN is no secret of clerk: TEA_TOKEN" in done.stderr
