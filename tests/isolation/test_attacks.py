"""What a hostile command attempts, in the way in which `run_command` runs it."""

import contextlib
import ctypes
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from cueline.config.config_source import from_table
from cueline.config.settings import Settings
from cueline.config.trust import found_settings
from cueline.isolation.ladder import overlays, rung
from cueline.isolation.landlock import SCOPES_ABI, abi
from tests.isolation.attacks import (
    ATTACKS,
    COUNTED,
    GOT_IT,
    HELD_BACK,
    LOG_INSIDE,
    NOT_HELD,
    SIGNALS,
    table,
)

RUNNER = Path(__file__).with_name("runner.py")
PAGE = Path(__file__).parents[2] / "docs/reliability.md"
SMALL = {"memory_mb": 256, "processes": 400, "file_mb": 20, "private_mb": 16, "open_files": 64}
HOSTS = ["localhost:{PORT}", "167772161", "2852039166"]


def listen(address, family=socket.AF_UNIX):
    listener = socket.socket(family)
    listener.bind(address)
    listener.listen(64)
    return listener


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    """A machine as it is found: a runner with keys, a log, sockets, another workspace."""
    with contextlib.ExitStack() as stack:
        base = tmp_path_factory.mktemp("target")
        places = ("home", "outside", "workspace", "without-log")
        home, outside, workspace, without_log = (base / name for name in places)
        for path in (
            home / ".config/cueline/keys.json",
            home / ".ray/auth_token",
            home / ".ssh/id_ed25519",
            outside / "secret.txt",
            workspace / ".cueline/log.db",
            workspace / ".cueline/log.db-wal",
        ):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text("hidden")
        for path in (workspace, without_log):
            subprocess.run(["git", "init", "-q", path], check=True)
        victim = stack.enter_context(subprocess.Popen(["sleep", "1000"]))
        stack.callback(victim.kill)
        # A socket's path may have 107 bytes, and Ray's is below /tmp, too.
        sockets = Path(f"/tmp/cueline-ray-{os.getpid()}")
        sockets.mkdir()
        stack.callback(shutil.rmtree, sockets)
        port = stack.enter_context(listen(("127.0.0.1", 0), socket.AF_INET)).getsockname()[1]
        abstract = f"cueline-{os.getpid()}"
        for address in (f"{sockets}/raylet", f"{sockets}/agent", f"\0{abstract}"):
            stack.enter_context(listen(address))
        receiver = stack.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
        receiver.bind(f"{sockets}/journal")
        libc = ctypes.CDLL(None)
        segment = libc.shmget(0, 4096, 0o600)
        stack.callback(libc.shmctl, segment, 0, None)
        told = {
            "OUTSIDE": str(outside),
            "VICTIM": str(victim.pid),
            "PORT": str(port),
            "ABSTRACT": abstract,
            "RAYLET": f"{sockets}/raylet",
            "JOURNAL": f"{sockets}/journal",
            "SEGMENT": str(segment),
            "SSH_AUTH_SOCK": f"{sockets}/agent",
            "HOME": str(home),
            "HTTP_PROXY": "",
        }
        runner = stack.enter_context(
            subprocess.Popen(
                [
                    sys.executable,
                    Path(__file__).with_name("runner.py"),
                    workspace / ".cueline/log.db",
                ],
                env=os.environ | told | {"ANTHROPIC_API_KEY": "planted-key"},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                text=True,
            )
        )
        stack.callback(runner.kill)

        def run(command, kind, folder=workspace):
            named = "bwrap" if kind in ("held", "hosts") else kind
            isolation = {"kind": named, "limits": {} if kind == "none" else SMALL}
            if kind == "hosts":
                isolation["network"] = HOSTS
            asked = {"command": command, "workspace": str(folder), "isolation": isolation}
            asked["overlay"] = ""
            if overlays().program and kind == "held":
                asked["overlay"] = tempfile.mkdtemp(dir=base)
                for name in ("upper", "work"):
                    Path(asked["overlay"], name).mkdir()
            runner.stdin.write(json.dumps(asked).replace("{PORT}", str(port)) + "\n")
            runner.stdin.flush()
            return json.loads(runner.stdout.readline())

        yield SimpleNamespace(
            run=run, outside=outside, workspace=workspace, without_log=without_log
        )


def skip_without(kind):
    if not rung(kind=kind).kind:
        pytest.skip(f"{kind} does not isolate commands here")


@pytest.mark.parametrize("attack", ATTACKS, ids=[each.name for each in ATTACKS])
def test_an_attempt_succeeds_without_isolation_and_fails_with_it(target, attack):
    skip_without("bwrap")
    possible = target.run(f"{attack.machine or 'true'} && echo possible", "none")

    bare = target.run(attack.command, "none")
    isolated = target.run(attack.command, attack.kind)
    held = target.run(attack.command, "held")

    assert GOT_IT in bare or "possible" not in possible
    assert GOT_IT not in isolated
    assert GOT_IT not in held or attack.name in HELD_BACK
    assert "did not run" not in isolated
    assert {"secret.txt"} >= {each.name for each in target.outside.iterdir()} - {"written"}


@pytest.mark.parametrize("attack", ATTACKS, ids=[each.name for each in ATTACKS])
def test_an_attempt_fails_below_landlock_or_the_page_says_that_it_does_not(target, attack):
    skip_without("landlock")
    if attack.landlock == COUNTED and os.geteuid() == 0:
        pytest.skip("it is not held for root")
    if attack.landlock == SIGNALS and abi() < SCOPES_ABI:
        pytest.skip("this kernel is too old for it")
    if attack.landlock == LOG_INSIDE:
        assert "did not run" in target.run(attack.command, "landlock")
        return

    isolated = target.run(attack.command, "landlock", target.without_log)

    assert attack.landlock.startswith(NOT_HELD) == (GOT_IT in isolated), isolated
    assert "did not run" not in isolated


@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_an_isolated_command_can_do_its_work(target, kind):
    skip_without(kind)
    work = "echo a >made && git add made && python3 -c 'print(1 + 1)' && cat made"

    done = target.run(work, kind, target.without_log)

    assert "2\na\n[exit status 0]" == done
    assert "a\n" == (target.without_log / "made").read_text()


@pytest.mark.parametrize("kind", ["bwrap", "held"])
@pytest.mark.parametrize("way", ["echo ../evil >{}", "ln -s ../evil {}", "mkdir -p {}/more"])
def test_a_repository_never_takes_its_configuration_from_a_planted_folder(target, kind, way):
    skip_without("bwrap")
    named = target.workspace / ".git/commondir"

    done = target.run(way.format(".git/commondir"), kind)

    assert "[exit status 0]" in done
    assert not os.path.lexists(named)
    told = subprocess.run(["git", "-C", target.workspace, "status"], check=False)
    assert 0 == told.returncode


def test_a_planted_settings_file_allows_nothing_more_at_the_next_start(target):
    target.run("printf '[policy]\\nauto_approve = true\\n' >cueline.toml", "bwrap")

    file = target.workspace / "cueline.toml"
    planted = from_table({"policy": {"auto_approve": True}}, file)
    found = found_settings(planted, file, Settings())

    assert file.exists()
    assert {"policy.auto_approve"} == found.wider.keys()
    assert {} == found.counts


def test_the_page_has_each_attempt_and_what_refuses_it():
    assert table() in PAGE.read_text(), "python -m tests.isolation.attacks prints the table"
