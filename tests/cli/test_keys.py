"""`cueline keys`: stored keys are encrypted, used, and never shown again."""

import asyncio
import json
import stat
import subprocess
import sys

import pytest

from cueline.client.client import open_client

KEY = "sk-ant-stored-0123456789"
OTHER = "sk-ant-another-0123456789"


@pytest.fixture
def folder(shell, monkeypatch):
    monkeypatch.setenv("CUELINE_KEYS_FOLDER", str(shell.folder / "keys"))
    return shell.folder / "keys"


def put(shell, *words, key=KEY):
    done = shell("keys", "set", "anthropic", *words, typed=f"{key}\n")
    assert 0 == done.exit_code, done.output
    return done


# 002-024: AES-256-GCM, with a version before each ciphertext.
def test_a_key_is_stored_encrypted_and_only_its_owner_can_read_the_files(shell, folder):
    put(shell)

    files = {each.name: each for each in folder.iterdir()}
    (stored,) = json.loads(files["keys.json"].read_text())["keys"]
    assert {"keys.json", "master.key"} == files.keys()
    assert ["v2", 16, 24] == [
        part if part == "v2" else len(part) for part in stored["key"].split(":")[:3]
    ]
    assert {0o600} == {stat.S_IMODE(each.stat().st_mode) for each in files.values()}
    assert KEY not in "".join(each.read_text() for each in files.values())


# 002-027: write-only.
def test_a_stored_key_is_never_shown(shell, folder):
    said = put(shell).output
    put(shell, "--user", "ann")
    put(shell, "--user", "ann", key=OTHER)

    rows = shell.json("keys", "list")
    said += shell("keys", "list").output + shell("providers").output + shell("doctor").output
    assert [("anthropic", "", 1), ("anthropic", "ann", 2)] == [
        (each["provider"], each["user"], each["version"]) for each in rows
    ]
    assert {"provider", "user", "version", "set_at"} == rows[0].keys()
    assert "anthropic: stored" in said
    assert not any(part in said for part in (KEY, OTHER, KEY[-4:] + "\n", "6789"))


def test_a_removed_key_is_gone(shell, folder):
    put(shell)

    assert 0 == shell("keys", "remove", "anthropic").exit_code
    again = shell("keys", "remove", "anthropic")

    assert 2 == again.exit_code
    assert "no key is stored; `cueline keys list` shows those that are" in again.stderr
    assert "no key is stored" in shell("keys", "list").stdout


@pytest.mark.parametrize(
    ("words", "key", "told"),
    [
        (["antropic"], KEY, "did you mean 'anthropic'?"),
        (["scripted"], KEY, "is not called over a network, and takes no key"),
        (["anthropic"], "1234567", "shorter than 8 characters"),
        (["anthropic"], "has a blank", "blanks or characters that no key has"),
        (["anthropic"], "", "shorter than 8 characters"),
    ],
)
def test_what_can_be_no_key_is_refused(shell, folder, words, key, told):
    done = shell("keys", "set", *words, typed=f"{key}\n")

    assert 2 == done.exit_code
    assert told in done.stderr
    assert not folder.exists()


def test_a_key_is_not_taken_from_the_command_line(shell, folder):
    done = shell("keys", "set", "anthropic", KEY)

    assert 2 == done.exit_code
    assert not folder.exists()


def test_a_terminal_asks_for_the_key_and_does_not_show_it(shell, folder, terminal):
    terminal.command("keys", "set", "anthropic")
    terminal.sees("Key of anthropic: ")
    terminal.type(KEY, "Enter")
    screen = terminal.sees("stored the key of anthropic")

    assert KEY not in screen
    assert [1] == [each["version"] for each in shell.json("keys", "list")]


@pytest.mark.parametrize("name", ["keys.json", "master.key"])
def test_a_file_that_others_can_read_is_refused(shell, folder, name):
    put(shell)
    (folder / name).chmod(0o640)

    done = shell("models", "anthropic")

    assert 2 == done.exit_code
    assert f"others may read it; run `chmod 600 {folder / name}`" in done.stderr


def test_a_damaged_file_of_keys_is_named(shell, folder):
    put(shell)
    (folder / "keys.json").write_text("{")

    done = shell("keys", "list")

    assert 2 == done.exit_code
    assert f"{folder / 'keys.json'}: is no file of keys; move it away" in done.stderr


# 002-007, 002-024: whose keys a session uses is recorded; a fork uses those of who forked it.
def test_a_session_records_its_user_as_the_owner_of_its_keys(shell, folder, monkeypatch):
    agent = shell.agent(shell.hello)
    monkeypatch.setenv("LOGNAME", "ann")
    shell("run", "Hello", "--agent", agent, "--inline", "--id", "one")
    monkeypatch.setenv("LOGNAME", "bob")
    shell("fork", "one", "--at", "1", "--inline", "--id", "two")

    assert ["ann", "bob"] == [asyncio.run(key_owner(shell, name)) for name in ("one", "two")]


async def key_owner(shell, name):
    async with open_client(str(shell.log)) as client:
        return [f async for _, f in client.session(name).events() if getattr(f, "agent", None)][
            -1
        ].agent.key_owner


# 002-035: what encrypts is loaded only where a stored key is read or written.
def test_nothing_that_encrypts_is_loaded_without_a_stored_key(shell, folder):
    code = (
        "import sys; from typer.testing import CliRunner; from cueline.cli import app\n"
        "done = CliRunner().invoke(app, sys.argv[1:])\n"
        "print('cryptography' in sys.modules, done.exit_code)"
    )

    def loads(*words):
        command = [sys.executable, "-c", code, *words]
        return subprocess.run(command, capture_output=True, text=True, check=True).stdout

    agent = shell.agent(shell.hello)
    run = "run", "Hello", "--agent", agent, "--inline"
    assert ["False 0\n"] * 2 == [loads("providers"), loads(*run)]
    put(shell)
    assert "True 0\n" == loads(*run)
