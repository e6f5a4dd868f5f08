"""Secrets planted where a user keeps them, looked for wherever cueline writes (I11)."""

import base64
import json
import subprocess
import sys
from urllib.parse import quote

import pytest

from cueline.events.sanitize import REDACTED
from tests.cli.conftest import CUELINE

TEAM = "team/c4nary+s3cret é"
KEY = "sk-ant-api03-c4nary-0123456789"
OWN = "0wn-c4nary-0123456789"
HOOK = "http://127.0.0.1:9/services/c4nary-t0ken"
STORED = "sk-st0red-c4nary-0123456789"
MASTER = base64.b64encode(b"c4nary of thirty-two whole bytes").decode()
SECRETS = (TEAM, KEY, OWN, HOOK, STORED, MASTER)
NAMES = ("TEAM_TOKEN", "ANTHROPIC_API_KEY", "OWN_TOKEN", "HOOK_URL")
TOOLS = """
import os
import cueline

@cueline.tool(read_only=True)
async def leak() -> str:
    "Say what must not be said."
    return " ".join(os.environ[name] for name in ("TEAM_TOKEN", "ANTHROPIC_API_KEY", "OWN_TOKEN"))

@cueline.tool(sensitive=True)
async def deliver(text: str) -> str:
    "Ask a person first."
    return text

@cueline.tool(read_only=True)
async def fail() -> str:
    "Say it in an error."
    raise RuntimeError(os.environ["TEAM_TOKEN"] + os.environ["OWN_TOKEN"])
"""
BROKEN = """
import os

raise RuntimeError("no luck with " + os.environ["TEAM_TOKEN"] + " and " + os.environ["OWN_TOKEN"])
"""


def forms():
    for secret in SECRETS:
        encoded = base64.b64encode(secret.encode()).decode()
        yield from (secret, encoded, quote(secret, safe=""), json.dumps(secret)[1:-1])


def found_in(content):
    held = content if isinstance(content, bytes) else content.encode()
    return [form for form in forms() if form.encode() in held]


@pytest.fixture
def planted(shell, monkeypatch):
    """A shell with secrets in its environment, its settings, an agent, and all that comes in."""
    for name, value in zip(NAMES, (TEAM, KEY, OWN, HOOK), strict=True):
        monkeypatch.setenv(name, value)
    keys = shell.folder / "config" / "cueline"
    keys.mkdir(parents=True, exist_ok=True)
    (keys / "master.key").write_text(MASTER)
    (keys / "master.key").chmod(0o600)
    assert 0 == shell("keys", "set", "openai", "--user", "ann", typed=STORED).exit_code
    shell.own_settings(
        'secrets = ["TEAM_TOKEN"]\n[[policy.hooks]]\non = "asked"\nurl = "$HOOK_URL"\n'
    )
    (shell.folder / "leaky.py").write_text(TOOLS)
    (shell.folder / "broken.py").write_text(BROKEN)
    told = json.dumps(" ".join(forms()))
    calls = '[{ name = "leak", arguments = {} }, { name = "fail", arguments = {} }]'
    asks = f"[{{ name = 'deliver', arguments = {{ text = {told} }} }}]"
    shell.agent(
        f"[[reply]]\ntext = {told}\nthinking = {told}\ncalls = {calls}\n"
        f"[[reply]]\ntext = {told}\ncalls = {asks}\n",
        tools=("leaky.py:leak", "leaky.py:fail", "leaky.py:deliver", "list_files"),
        more='secrets = ["OWN_TOKEN"]\n',
    )
    (shell.folder / "work" / quote(KEY)).write_text(TEAM)
    return shell


def run(shell, *more):
    words = ["run", " ".join(forms()), "--agent", "agent.toml", "--inline", "--id", "one", *more]
    return subprocess.run([*CUELINE, *words], cwd=shell.folder, capture_output=True, check=False)


def test_what_is_said_and_kept_holds_no_secret(planted):
    done = run(planted, "--label", f"key={KEY}")

    assert 3 == done.returncode, done.stderr
    assert "ConnectError" in planted("export", "one", "--format", "events").output
    assert ([], []) == (found_in(done.stdout), found_in(done.stderr))
    kept = {each.name: each.read_bytes() for each in planted.log.parent.iterdir()}
    assert {} == {name: found for name, held in kept.items() if (found := found_in(held))}
    assert REDACTED.encode() in kept["log.db"] + kept.get("log.db-wal", b"")
    for words in (
        ["show", "one"],
        ["tail", "one"],
        ["export", "one"],
        ["export", "one", "--format", "events"],
        ["replay", "one"],
        ["list"],
        ["audit"],
        ["audit", "--json"],
        ["pending"],
        ["status"],
        ["doctor"],
        ["providers"],
        ["providers", "--json"],
        ["keys", "list"],
        ["keys", "list", "--json"],
        ["config", "show", "--agent", "agent.toml"],
    ):
        assert [] == found_in(planted(*words).output), words


def test_a_tool_that_cannot_be_imported_does_not_tell_why_with_a_secret(planted):
    agent = planted.folder / "agent.toml"
    agent.write_text(agent.read_text().replace("leaky.py:leak", "broken.py:leak"))

    done = run(planted)

    assert 2 == done.returncode
    assert b"no luck with [redacted]" in done.stderr
    assert ([], []) == (found_in(done.stdout), found_in(done.stderr))


@pytest.mark.parametrize(
    "words",
    [
        ["show", KEY],
        ["run", "Hi", "--agent", f"{KEY}.toml"],
        ["run", "Hi", "--agent", "agent.toml", "--label", TEAM],
        ["run", "Hi", "--agent", "agent.toml", "--id", f"{TEAM} {KEY}"],
        ["pending", "--log", f"{KEY}.db"],
    ],
    ids=str,
)
def test_a_refusal_repeats_no_secret(planted, words):
    done = planted(*words)

    assert 0 != done.exit_code
    assert [] == found_in(done.output)


def test_a_bug_is_told_without_secrets(planted):
    code = (
        "import os; from cueline import cli, runtime; from cueline.cli import open_log\n"
        "def run(work):\n"
        "    work.close()\n"
        "    from cueline.providers.key_store import KeyStore\n"
        "    stored = KeyStore(os.environ).key('openai', 'ann').get_secret_value()\n"
        "    names = 'TEAM_TOKEN', 'ANTHROPIC_API_KEY'\n"
        "    raise RuntimeError(stored.join(map(os.environ.get, names)))\n"
        "open_log.run = run\n"
        "import sys; sys.argv = ['cueline', 'list']\n"
        "cli.main()\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", code], cwd=planted.folder, capture_output=True, check=False
    )

    assert 1 == done.returncode
    assert b"RuntimeError: [redacted]" in done.stderr
    assert [] == found_in(done.stderr)
