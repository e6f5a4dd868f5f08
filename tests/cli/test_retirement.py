"""A model that its vendor ends is told of, in a line."""

import pytest
from anthropic.resources.messages import DEPRECATED_MODELS

MODEL, DAY = list(DEPRECATED_MODELS.items())[-1]
LINE = f"anthropic ends the model {MODEL} on {DAY}; name another as `model`"


@pytest.fixture
def retiring(shell, monkeypatch):
    """Return a shell with the file of an agent whose second model will end."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "sk-ant-not-a-real-key")
    (shell.folder / "agent.toml").write_text(f"""
name = "clerk"
provider = "anthropic"
model = "claude-of-tomorrow"
[[fallback]]
provider = "anthropic"
model = "{MODEL}"
""")
    return shell


def test_who_starts_a_session_is_told_that_a_model_ends(retiring):
    done = retiring("run", "Hi", "--agent", "agent.toml", "--detach", "--id", "one")

    assert (0, "one\n") == (done.exit_code, done.stdout)
    assert f"warning: {LINE}\n" in done.stderr


def test_the_doctor_tells_of_the_models_of_an_agent(retiring):
    done = retiring("doctor", "--agent", "agent.toml")

    assert f"! model: {LINE}\n" in done.stdout
    assert "claude-of-tomorrow" not in done.stdout


def test_the_doctor_tells_of_the_model_in_the_settings(shell, monkeypatch):
    monkeypatch.setenv("CUELINE_PROVIDER", "anthropic")
    monkeypatch.setenv("CUELINE_MODEL", MODEL)

    assert f"! model: {LINE}\n" in shell("doctor").stdout
