"""What isolates commands here, and what is said where nothing does."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from cueline.errors import ConfigError
from cueline.events.agent_parts import Isolation
from cueline.isolation import ladder
from cueline.isolation.ladder import explain, rung
from cueline.isolation.sandbox import sandbox

ASK = "import json; from cueline.isolation.ladder import rung; print(json.dumps(rung()))"


@pytest.fixture
def folder(tmp_path):
    """A folder with a program in the place of bwrap."""

    def make(script):
        (tmp_path / "bwrap").write_text(f"#!/bin/sh\n{script}\n")
        (tmp_path / "bwrap").chmod(0o755)
        return [str(tmp_path)]

    return make


@pytest.fixture(autouse=True)
def _no_package(monkeypatch):
    monkeypatch.setattr(ladder, "_PACKAGE", "no_such_package")


def skip_without_landlock():
    if not rung(kind="landlock").kind:
        pytest.skip("Landlock isolates nothing here")


def test_where_it_is_not_installed_that_is_said_with_what_to_install(tmp_path):
    found = rung([str(tmp_path)], kind="bwrap")

    assert "bubblewrap (bwrap) is not installed" == found.cause
    assert "apt install bubblewrap" in found.fix


def test_one_that_is_too_old_is_named_with_its_version(folder):
    found = rung(folder("echo bubblewrap 0.4.1"), kind="bwrap")

    assert "is 0.4.1, and the oldest that works is 0.8" in found.cause


def test_one_that_isolates_nothing_is_not_taken_and_its_message_is_told(folder):
    script = (
        'test "$1" = --version && echo bubblewrap 0.9.0 || { echo "bwrap: no way" >&2; exit 1; }'
    )

    found = rung(folder(script), kind="bwrap")

    assert ("", True) == (found.kind, "bwrap: no way" in found.cause)


def test_landlock_is_taken_where_bwrap_does_not_work_and_says_why_and_what_it_lacks(tmp_path):
    skip_without_landlock()

    found = rung([str(tmp_path)])

    assert "landlock" == found.kind
    assert found.name.startswith("Landlock (ABI ")
    assert "weaker than bubblewrap" in found.gap
    assert "bubblewrap (bwrap) is not installed" == found.cause
    assert "apt install bubblewrap" in found.fix


def test_an_old_landlock_is_not_taken_and_both_causes_are_told(monkeypatch, tmp_path):
    skip_without_landlock()
    monkeypatch.setattr(ladder, "OLDEST_ABI", 99)
    places = [str(tmp_path / "empty")]

    found, alone = rung(places), rung(places, kind="landlock")

    assert ("", "") == (found.kind, alone.kind)
    assert "is not installed, and Landlock has ABI" in found.cause
    assert "the oldest that is taken is 99" in alone.cause
    assert "Linux 6.7 or newer" in alone.fix


SETTINGS = {
    "proc/sys/kernel/apparmor_restrict_unprivileged_userns": ("1", "bwrap-userns-restrict"),
    "proc/sys/user/max_user_namespaces": ("0", "sudo sysctl user.max_user_namespaces=15000"),
    "proc/sys/kernel/unprivileged_userns_clone": ("0", "kernel.unprivileged_userns_clone=1"),
    "proc/self/status": ("Seccomp:\t2", "--security-opt seccomp=unconfined"),
}


@pytest.mark.parametrize("path", SETTINGS)
def test_the_setting_that_forbids_it_is_named_with_what_changes_it(tmp_path, path):
    value, fix = SETTINGS[path]
    (tmp_path / path).parent.mkdir(parents=True)
    (tmp_path / path).write_text(f"{value}\n")

    found = explain("bwrap: Operation not permitted", tmp_path)

    assert fix in found.fix
    assert "bwrap: Operation not permitted" in found.cause


@pytest.mark.parametrize("kind", ["bwrap", "landlock"])
def test_inside_of_an_isolated_command_a_filter_is_named_and_only_landlock_may_serve(kind):
    """A real failure: the filter forbids namespaces, as that of a container does."""
    if not rung(kind=kind).kind:
        pytest.skip(f"{kind} does not isolate commands here")
    with sandbox(
        [sys.executable, "-c", ASK],
        isolation=Isolation(kind=kind, read=[each for each in sys.path if Path(each).is_dir()]),
        environment=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        workspace=None,
    ) as box:
        done = subprocess.run(
            box.argv,
            env=box.environment,
            pass_fds=box.descriptors,
            preexec_fn=box.before_exec,
            capture_output=True,
            check=False,
        )

    # Landlock in Landlock could not be proved, because nothing is left that it would forbid.
    serves = rung(kind="landlock").kind if kind == "bwrap" else ""
    found, _, program, cause, fix = json.loads(done.stdout)
    assert (serves, "") == (found, program)
    assert "forbids" in cause
    assert fix


def test_a_success_is_remembered_and_a_failure_is_looked_at_again(folder, tmp_path):
    places = folder("exit 1")
    assert "" == rung(places, kind="bwrap").kind
    (tmp_path / "bwrap").unlink()
    if program := rung(kind="bwrap").program:
        (tmp_path / "bwrap").symlink_to(program)
        assert rung(places, kind="bwrap").program == str(tmp_path / "bwrap")
        assert rung(places, kind="bwrap") is rung(places, kind="bwrap")


def test_a_command_that_cannot_be_isolated_does_not_run_unless_that_is_allowed(
    monkeypatch, tmp_path
):
    monkeypatch.setattr(ladder.rung, "__defaults__", ((str(tmp_path),),))
    monkeypatch.setattr(ladder, "OLDEST_ABI", 99)
    said = {"environment": {}, "workspace": None}

    missing = r'is not installed.*write `isolation = "none"`'
    refused = pytest.raises(ConfigError, match=missing)
    with refused, sandbox(["true"], isolation=Isolation(), **said):
        pass
    with sandbox(["true"], isolation=Isolation(kind="none"), **said) as box:
        assert ["true"] == box.argv
