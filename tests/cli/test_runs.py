"""`cueline submit`, `retry`, `runs`, `blueprints` and `runners`, without a cluster."""

import asyncio
import json

import pytest

from cueline.client.client import open_client
from cueline.runtime.inline import inline
from tests.client.test_runs import SCHEMA, agent, record, registered, removed

LOG = ".cueline/log.db"


@pytest.fixture
def offered(shell):
    """A shell with a log in which a runner offers `crawler` and `report`."""
    file = shell.agent('[[reply]]\ntext = "Done."\n')
    assert 0 == shell("run", "Go", "--agent", file, "--inline").exit_code
    on_log(lambda client: record(client, registered(agent(), agent("report", **WITH_SCHEMA))))
    return shell


WITH_SCHEMA = {"parameters_schema": SCHEMA, "description": "Writes a report."}


def on_log(ask):
    async def asked():
        async with open_client(LOG) as client:
            return await ask(client)

    return asyncio.run(asked())


def test_a_submitted_run_is_queued(offered):
    done = offered("submit", "crawler", "Read the news")

    (run,) = offered.json("runs")
    assert (0, f"{run['id']}\n") == (done.exit_code, done.stdout)
    assert "nothing runs that would take it up: `cueline up`" in done.stderr
    head, row = offered("runs").stdout.splitlines()
    assert ["RUN", "STATUS", "BLUEPRINT", "RUNNER", "AGE", "ERROR"] == head.split()
    assert [run["id"], "queued", "crawler"] == row.split()[:3]


def test_a_run_that_waits_for_others_says_so(shell):
    file = shell.agent('[[reply]]\ntext = "Done."\n')
    assert 0 == shell("run", "Go", "--agent", file, "--inline").exit_code
    few = agent(max_running=2)

    async def drive(client):
        async with inline(client.log, scope=None, on_trouble=print) as place:
            await record(client, registered(few, incarnation=place.presence.incarnation))
            await client.submit("crawler", "go")
            while [each.max_running for each in await client.runs()] != [2]:
                await client.log.clock.sleep(0.02)

    on_log(drive)

    _, row = shell("runs").stdout.splitlines()
    assert "queued: 2 at a time" in row
    (run,) = shell.json("runs")
    assert ("queued", 2) == (run["status"], run["max_running"])
    said = "2 runs of crawler may go on at a time, and it is not its turn"
    assert said in " ".join(shell("show", run["id"]).stdout.split())


def test_parameters_are_given_by_name(offered):
    done = offered("submit", "report", "-p", "year=2026", "-p", "id=7", "--json")

    assert (0, "StartAsked") == (done.exit_code, json.loads(done.stdout)["message"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["crawlr", "go"], "crawlr: no runner has ever offered such a blueprint: did you mean"),
        (["crawler"], "it has a model and no parameters: name a goal"),
        (["report"], '"year" is a required property; they must fit {"type": "object"'),
        (["report", "-p", "year"], "'year' is not NAME=VALUE"),
    ],
)
def test_a_run_that_cannot_be_is_refused(offered, words, said):
    done = offered("submit", *words)

    assert 2 == done.exit_code
    assert said in " ".join(done.stderr.split())
    assert [] == offered.json("runs")


def test_blueprints_and_runners_are_listed(offered):
    _, crawler, report = offered("blueprints").stdout.splitlines()
    _, runner = offered("runners").stdout.splitlines()

    assert ["crawler", "online", "r1", "scripted"] == crawler.split()[:4]
    assert ["report", "online", "r1"] == report.split()[:3]
    assert report.endswith("year, id    Writes a report.")
    assert ["r1", "up", "online", "m1", "7", "crawler,", "report"] == runner.split()
    assert ["r1"] == [each["incarnation"] for each in offered.json("runners")]


def test_a_log_without_runs_says_how_to_offer_blueprints(shell):
    file = shell.agent('[[reply]]\ntext = "Done."\n')
    shell("run", "Go", "--agent", file, "--inline")

    told = [shell(each).stdout for each in ("runs", "blueprints", "runners")]
    assert [f"no {w}; `cueline up --blueprints FOLDER` offers blueprints\n" for w in WHAT] == told


WHAT = ("runs", "blueprints", "runners")


def test_a_run_is_waited_for(offered):
    typed = submitted_and_driven(offered, "submit", "crawler", "go", "--wait")
    again = submitted_and_driven(offered, "retry", typed.stderr.strip(), "--wait")

    assert (0, "Hi\n") == (typed.exit_code, typed.stdout)
    assert (0, "Hi\n") == (again.exit_code, again.stdout)
    assert ["completed", "completed"] == [each["status"] for each in offered.json("runs")]
    assert "no runs that fit;" in offered("runs", "--status", "queued").stdout


def submitted_and_driven(shell, *words):
    """Type *words* while an inline host drives the log, whose runner offers the blueprints."""

    async def type_them(client):
        async with inline(client.log, scope=None, on_trouble=print) as place:
            name = place.presence.incarnation
            before = [removed(each.incarnation) for each in await client.runners()]
            await record(client, *before, registered(agent(), incarnation=name))
            return await asyncio.to_thread(shell, *words)

    return on_log(type_them)


def test_a_folder_that_cannot_be_offered_is_refused_before_anything_starts(shell):
    done = shell("up", "--blueprints", "nowhere")

    assert (2, True) == (done.exit_code, "is no folder; make it first" in done.stderr)
