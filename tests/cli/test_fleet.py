"""`cueline scale` and `cueline fleet`, without a cluster."""

import pytest


@pytest.fixture
def log(shell):
    """A shell with a log."""
    agent = shell.agent('[[reply]]\ntext = "Done."\n')
    assert 0 == shell("run", "Go", "--agent", agent, "--inline").exit_code
    return shell


def test_a_number_that_was_asked_for_is_for_the_next_up(log):
    done = log("scale", "--runners", "8", "--hosts", "1..2")

    assert ["hosts: 1..2", "runners: 8"] == done.stdout.splitlines()[:2]
    assert "no `cueline up` is running" in done.stdout


def test_a_group_is_named_by_its_options(log):
    words = ["--label", "zone=b", "--cpus", "2", "--gpus", "0.5", "--memory", "2G"]
    done = log("scale", "--runners", "0..4", *words, "--resource", "tpu=1", "--per-node", "2")

    told = "--label zone=b --cpus 2 --gpus 0.5 --memory 2G --resource tpu=1 --per-node 2"
    assert f"runners: 0..4 {told}" == done.stdout.splitlines()[0]


def test_the_fleet_tells_what_is_wanted(log):
    before = log("fleet").stdout
    log("scale", "--runners", "2", "--gpus", "1")
    _, head, row = log("fleet").stdout.splitlines()

    assert "no `cueline up` is running for this log\n" == before
    assert ["GROUP", "WANTED", "RUNNING", "PENDING", "TAKES"] == head.split()
    assert ["runners", "2", "0", "--gpus", "1"] == row.split()
    assert {"kind": "runner", "most": 2, "running": 0}.items() <= log.json("fleet")["groups"][
        0
    ].items()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "name a number: --hosts N, --runners N"),
        (["--runners", "many"], "'many' is neither a number, as 8, nor a range, as 0..8"),
        (["--runners", "4..2"], "4..2 is no range"),
        (["--runners", "1", "--memory", "4X"], "'4X' is no size, as 500M or 4G"),
        (["--runners", "1", "--resource", "tpu"], "'tpu' is not NAME=NUMBER"),
        (["--runners", "1", "--label", "zone"], "'zone' is not KEY=VALUE"),
    ],
)
def test_a_number_that_cannot_be_is_refused(log, words, said):
    done = log("scale", *words)

    assert 2 == done.exit_code
    assert said in " ".join(done.stderr.split())
