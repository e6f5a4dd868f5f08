"""Runs of blueprints, as a program and the command line ask for them; nothing drives them here."""

import pytest

from cueline.actors.fleet_log import FleetLog
from cueline.actors.session_tree import read_start_request
from cueline.agents.agent import Agent
from cueline.agents.preflight import agent_to_record
from cueline.client.blueprint_folder import read_blueprints
from cueline.client.client import open_client
from cueline.errors import ConfigError, RejectedError
from cueline.events.fleet import (
    FleetTaken,
    RunnerRegistered,
    RunnerRemoved,
    RunnerStale,
    WorkerGroup,
)
from cueline.events.start import Run
from cueline.testing.clock import NOON

SCRIPT = {"script": 'reply = [{ text = "Hi" }]'}
SCHEMA = {
    "type": "object",
    "properties": {"year": {"type": "integer"}, "id": {"type": "string"}},
    "required": ["year"],
}


def agent(name="crawler", **fields):
    made = Agent(name=name, provider="scripted", model="s", parameters=SCRIPT)
    return agent_to_record(made).model_copy(update=fields)


def registered(*agents, incarnation="r1"):
    return RunnerRegistered(
        incarnation=incarnation,
        runner="up",
        blueprints=agents,
        group=WorkerGroup(kind="runner"),
        machine="m1",
        node="n1",
        pid=7,
        epoch=1,
        at=NOON,
    )


def removed(incarnation="r1"):
    return RunnerRemoved(incarnation=incarnation, reason="killed", epoch=1, at=NOON)


STALE = RunnerStale(incarnation="r1", reason="silent", removed_at=NOON, epoch=1, at=NOON)


@pytest.fixture
async def client(tmp_path):
    async with open_client(tmp_path / "log.db", must_exist=False) as client:
        await record(client, FleetTaken(epoch=1, up="up-1", at=NOON))
        yield client


async def record(client, *facts):
    await FleetLog(client.log.journal()).record(facts, "system:dispatcher")


async def test_a_run_is_queued_with_the_recorded_agent_of_its_blueprint(client):
    await record(client, registered(agent()))

    session = await client.submit("crawler", "Read the news", labels={"team": "a"})

    (run,) = await client.runs(status="queued")
    assert (session.id, "crawler", None, None) == (run.id, run.blueprint, run.runner, run.retry_of)
    assert "nobody" == session.receipt.read_by


# C31, 001-041
async def test_a_name_that_nobody_ever_offered_is_refused_with_a_suggestion(client):
    with pytest.raises(RejectedError, match="`cueline up --blueprints FOLDER` offers some"):
        await client.submit("crawler", "go")
    await record(client, registered(agent()))

    with pytest.raises(RejectedError, match=r"crawlr: .*did you mean 'crawler'"):
        await client.submit("crawlr", "go")
    assert [] == list(await client.runs())


# C31
async def test_a_run_can_be_refused_while_no_runner_is_online(client):
    await record(client, registered(agent()), STALE)

    with pytest.raises(RejectedError, match="no runner that is online offers it now"):
        await client.submit("crawler", "go", queue_seconds=0)
    assert "queued" == (await queued(client, "crawler", "go")).status


async def queued(client, *words, **fields):
    await client.submit(*words, **fields)
    return (await client.runs())[0]


async def test_a_blueprint_with_a_model_needs_a_goal(client):
    await record(client, registered(agent()))

    with pytest.raises(ConfigError, match=r"crawler: .*name a goal"):
        await client.submit("crawler")


@pytest.mark.parametrize(
    ("texts", "said"),
    [
        ({}, r'parameter_validation_failed: .*"year" is a required property.*"required"'),
        ({"year": "soon"}, r"parameter_validation_failed: \$.year: .*integer.*they must fit"),
    ],
)
async def test_parameters_are_checked_before_anything_is_recorded(client, texts, said):
    await record(client, registered(agent(parameters_schema=SCHEMA)))

    with pytest.raises(RejectedError, match=said):
        await client.submit("crawler", texts=texts)
    assert [] == list(await client.runs())


async def test_a_blueprint_without_parameters_takes_none(client):
    await record(client, registered(agent()))

    with pytest.raises(RejectedError, match="it takes no parameters, such as x"):
        await client.submit("crawler", "go", {"x": 1})


async def test_texts_are_read_as_the_schema_says(client):
    await record(client, registered(agent(parameters_schema=SCHEMA)))

    session = await client.submit(
        "crawler", texts={"year": "2026", "id": "7", "more": "[1]", "word": "x"}
    )

    told = (await start_of(client, session)).parameters
    assert {"year": 2026, "id": "7", "more": [1], "word": "x"} == told


async def start_of(client, session):
    return await read_start_request(client.log.journal(), session.stream_name)


# 001-027, 001-051
async def test_a_run_that_has_ended_can_be_tried_again(client):
    await record(client, registered(agent()))
    first = await client.submit("crawler", "go", queue_seconds=60, labels={"team": "a"})

    with pytest.raises(RejectedError, match="it has not ended"):
        await client.retry(first.id)
    await first.stop()
    again = await client.retry(first.id)

    start = await start_of(client, again)
    link = Run(blueprint="crawler", retry_of=first.stream_name, queue_seconds=60)
    assert (link, "go", {"team": "a"}) == (start.run, start.goal, start.labels)
    assert [first.id] == [each.retry_of for each in await client.runs(status="queued")]


async def test_an_ordinary_session_is_no_run(client):
    session = await client.start(
        Agent(name="a", provider="scripted", model="s", parameters=SCRIPT), "go"
    )

    with pytest.raises(RejectedError, match="it is no run of a blueprint"):
        await client.retry(session.id)
    assert [] == list(await client.runs())


# 001-043, 001-013
async def test_a_blueprint_is_listed_with_its_runner(client):
    await record(client, registered(agent(), agent("other")))
    online = await states(client)
    await record(client, STALE)
    stale = await states(client)
    await record(client, removed())

    assert [("crawler", "online", "r1"), ("other", "online", "r1")] == online
    assert [("crawler", "stale", "r1"), ("other", "stale", "r1")] == stale
    assert [("crawler", "offline", None), ("other", "offline", None)] == await states(client)
    assert [] == await client.runners()


async def states(client):
    return [(each.name, each.status, each.runner) for each in await client.blueprints()]


async def test_a_runner_is_listed_with_its_blueprints(client):
    await record(client, registered(agent("b"), agent("a")), STALE)

    (runner,) = await client.runners()

    assert ("r1", "up", "stale", ("a", "b")) == (
        runner.incarnation,
        runner.name,
        runner.status,
        runner.blueprints,
    )
    assert (None, NOON) == (runner.heard_at, runner.removed_at)


async def test_a_status_that_no_run_has_is_refused(client):
    with pytest.raises(ConfigError, match="'queue' is no status: did you mean 'queued'"):
        await client.runs(status="queue")


# Folders.


def write(folder, file, name):
    folder.mkdir(exist_ok=True)
    text = f'name = "{name}"\nprovider = "scripted"\nmodel = "s"\n'
    script = """[parameters]\nscript = 'reply = [{ text = "Hi" }]'\n"""
    (folder / file).write_text(text + script)


def test_each_agent_file_in_a_folder_is_a_blueprint(tmp_path):
    write(tmp_path, "b.toml", "one")
    write(tmp_path, "a.toml", "two")
    (tmp_path / "notes.txt").write_text("no agent")

    assert ["two", "one"] == [each.name for each in read_blueprints(tmp_path)]


# D23, C29
@pytest.mark.parametrize(
    ("files", "said"),
    [
        ({}, r"has no agent file"),
        ({"a.toml": "x", "b.toml": "x"}, r"b.toml: .*a.toml has the name 'x', too"),
        ({"a.toml": "default"}, r"'default' is cueline's own agent"),
    ],
)
def test_a_folder_that_cannot_be_offered_is_refused(tmp_path, files, said):
    for file, name in files.items():
        write(tmp_path, file, name)

    with pytest.raises(ConfigError, match=said):
        read_blueprints(tmp_path)


def test_a_folder_that_is_none_is_refused(tmp_path):
    with pytest.raises(ConfigError, match="is no folder; make it first"):
        read_blueprints(tmp_path / "nowhere")
