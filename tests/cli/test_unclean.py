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


def test_it_is_in_no_file_any_more_once_a_host_has_read_it(told):
    kept = {each.name: each.read_bytes() for each in told.log.parent.iterdir()}

    assert {} == {name: held for name, held in kept.items() if CANARY.encode() in held}
    assert "It is [redacted] xxx" in told("show", "one").stdout


@pytest.mark.parametrize(
    "words",
    [
        ("audit", "verify"),
        ("replay", "one", "--check"),
        ("export", "one", "--events"),
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
