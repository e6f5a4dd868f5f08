"""An `up` of another version on the cluster of the one that runs: it takes over, and drains it."""

import asyncio
import json
import os
import subprocess
import sys

import pytest
import ray

from cueline.cluster.cluster_context import VERSION
from cueline.runtime.open_log import open_log
from cueline.runtime.up_record import find_up
from cueline.testing.wait import wait_until
from tests.ray.test_own_ray import ACTS

FORMER = "0.0.9"
SCRIPT = """
[[reply]]
text = "I act."
calls = [{ name = "undeclared" }]

[[reply]]
text = "Done."
"""
SESSIONS = 3


@pytest.fixture
def typed(tmp_path, cluster):
    """Type commands of this version, or as one of a former version, in what a Ray job gives."""
    about = tmp_path / f"former/cueline-{FORMER}.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text(f"Metadata-Version: 2.1\nName: cueline\nVersion: {FORMER}\n")
    (tmp_path / "work").mkdir()
    (tmp_path / "script.toml").write_text(SCRIPT)
    (tmp_path / "agent.toml").write_text(
        'name = "worker"\nprovider = "scripted"\nmodel = "script.toml"\n'
        f'workspace = "work"\ntools = ["{ACTS}:undeclared"]\n'
    )
    path = str(about.parent)
    job = json.dumps({"runtime_env": {"env_vars": {"PYTHONPATH": path}}})
    former = {"PYTHONPATH": path, "RAY_JOB_CONFIG_JSON_ENV_VAR": job}

    def run(*words, of=VERSION):
        return subprocess.run(
            [sys.executable, "-m", "cueline.cli", *words, "--log", str(tmp_path / "log.db")],
            check=False,
            capture_output=True,
            text=True,
            cwd=tmp_path / "work",
            env={**os.environ, "RAY_ADDRESS": cluster.address} | (former if of == FORMER else {}),
        )

    yield run
    run("down")


def names():
    there = ray.util.list_named_actors(all_namespaces=True)
    return {each["name"] for each in there if each["name"].startswith("up/")}


def test_an_up_of_another_version_takes_over_and_no_call_is_made_again(typed, tmp_path):
    """I5: calls in flight end on the runner of the former version, which then ends."""
    log, journal = tmp_path / "log.db", tmp_path / "work/journal"
    first = typed("up", "--detach", of=FORMER)
    assert 0 == first.returncode, first.stderr
    for number in range(SESSIONS):
        asked = ("run", "Go.", "--agent", "../agent.toml", "--id", f"s{number}", "--detach")
        assert 0 == (done := typed(*asked, of=FORMER)).returncode, done.stderr
    wait_until(journal.exists)
    before = names()

    second = typed("up", "--detach")
    (tmp_path / "work/go").touch()
    wait_until(lambda: all("SessionCompleted" in each for each in types(log)))
    wait_until(lambda: all(each.endswith(f"@{VERSION}") for each in names()))

    assert (0, 0) == (first.returncode, second.returncode), second.stderr
    assert {FORMER} == {each.rpartition("@")[2] for each in before}
    assert f"taking over from cueline {FORMER}" in second.stderr
    assert VERSION == find_up(log).version
    lines = [line.split() for line in journal.read_text().splitlines()]
    assert sorted(f"session-default/s{each}/1.0" for each in range(SESSIONS)) == sorted(
        key for key, *_ in lines
    )


def types(log):
    """Return the types of the events of each session, read here: a command takes a second."""

    async def read():
        async with open_log(log) as opened:
            journal = opened.journal()
            streams = [f"session-default/s{number}" for number in range(SESSIONS)]
            return [[fact.type async for _, fact in journal.read(each)] for each in streams]

    return asyncio.run(read())
