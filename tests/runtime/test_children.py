"""Agents that start agents, as a user has them."""

import json
from operator import itemgetter

import pytest

import cueline
from cueline.agents.agent import Agent
from cueline.deciders.session import Status
from cueline.errors import ConfigError
from cueline.events.session import ToolReturned
from cueline.events.start import ANY_AGENT, ASK_CHILD
from cueline.events.stream import category_of, session_of
from tests.scripted import HELLO, scripted

ASKS = """
reply = [{ calls = [{ name = "helper", arguments = { goal = "help" } }] }, { text = "I thank." }]
"""
CHOOSES = """
reply = [
    { calls = [{ name = "delegate", arguments = ARGUMENTS }] },
    { text = "One." }, { text = "Two." },
]
"""
DEPLOYS = 'reply = [{ calls = [{ name = "deploy" }] }, { text = "I deployed." }]'
ASKS_LATER = """
reply = [
    { calls = [{ name = "delegate", arguments = ARGUMENTS }] },
    { text = "It helps." },
    { calls = [{ name = "child_result", arguments = { session = "s.1.0" } }] },
    { text = "I know." },
]
"""
AGENT = """
name = "NAME"
provider = "scripted"
model = "NAME.script.toml"
KEYS
"""


@cueline.tool(sensitive=True)
async def deploy() -> str:
    """Deploy."""
    return "deployed"


def helper(script='reply = [{ text = "I helped." }]', *tools, **fields):
    return scripted(script, *tools, name="helper", description="Helps.", **fields)


def runtime(folder):
    return cueline.open_runtime(folder / "log.db", on="inline")


def written(folder, name, keys="", script='[[reply]]\ntext = "Hm."\n'):
    """Write an agent file and its script; return its path."""
    (folder / f"{name}.script.toml").write_text(script)
    path = folder / f"{name}.toml"
    path.write_text(AGENT.replace("NAME", name).replace("KEYS", keys))
    return path


# 003-003
async def test_an_agent_is_a_tool_of_another(tmp_path):
    lead = scripted(ASKS, helper())
    async with runtime(tmp_path) as here:
        session = await here.start(lead, "go", id="s")
        result = await session.result()
        child = await here.session("s.1.0").result()

    assert (Status.COMPLETED, "I thank.") == (result.status, result.text)
    assert (Status.COMPLETED, "I helped.") == (child.status, child.text)


# 000-072: correlation ids
async def test_each_event_of_a_tree_has_the_id_of_its_topmost_session(tmp_path):
    lead = scripted(ASKS, helper(DEPLOYS, deploy), limits={"max_tokens": 1_000_000})
    async with runtime(tmp_path) as here:
        session = await here.start(lead, "go", id="s")
        await session.result()
        await (await here.start(helper(), "help", id="own", parent="s", open=True)).result()
    async with runtime(tmp_path) as here:
        await here.approve("s.1.0.1.0.1")
        await here.resume("s")
        await here.session("own").send("What else?")
        await here.session("s").result()
        events = [each async for each in here.log.store.read_all()]

    of_tree = [each for each in events if session_of(each.stream)]
    assert {"s"} == {each.correlation_id for each in of_tree}
    assert {"session", "inbox", "approval", "budget", "tree"} == {
        category_of(each.stream) for each in of_tree
    }
    assert not {each.correlation_id for each in events if each not in of_tree} - {None}


@pytest.mark.parametrize(
    ("mode", "text"), [("sync", "One."), ("async_poll", "One."), ("async_callback", "Two.")]
)
async def test_a_model_chooses_agent_and_mode(tmp_path, mode, text):
    given = f'{{ agent = "helper", goal = "help", mode = "{mode}" }}'
    lead = scripted(CHOOSES.replace("ARGUMENTS", given), agents=[helper()])
    async with runtime(tmp_path) as here:
        result = await (await here.start(lead, "go")).result()

    assert (Status.COMPLETED, text) == (result.status, result.text)


async def test_a_model_asks_for_the_result_of_an_agent_when_it_wants_it(tmp_path):
    given = '{ agent = "helper", goal = "help", mode = "async_poll" }'
    lead = scripted(ASKS_LATER.replace("ARGUMENTS", given), agents=[helper()])
    async with runtime(tmp_path) as here:
        session = await here.start(lead, "go", id="s", open=True)
        await session.result()
        await session.send("What did it say?")
        result = await session.result()
        facts = [each.event async for each in session.events()]

    assert (Status.IDLE, "I know.") == (result.status, result.text)
    (said,) = [f.output for f in facts if isinstance(f, ToolReturned) and f.child]
    assert ("completed", "I helped.") == itemgetter("status", "result")(json.loads(said))


async def test_what_a_child_asks_a_person_is_what_its_parent_waits_for(tmp_path):
    lead = scripted(ASKS, helper(DEPLOYS, deploy))
    async with runtime(tmp_path) as here:
        session = await here.start(lead, "go", id="s")
        waiting = await session.result()
        await here.approve("s.1.0.1.0.1")
        result = await session.result()

    assert (Status.WAITING, "s.1.0") == (waiting.status, waiting.text)
    assert (Status.COMPLETED, "I thank.") == (result.status, result.text)


async def test_a_tree_that_waits_for_a_person_goes_on_where_its_root_is_resumed(tmp_path):
    lead = scripted(ASKS, helper(DEPLOYS, deploy))
    async with runtime(tmp_path) as here:
        await (await here.start(lead, "go", id="s")).result()
    async with runtime(tmp_path) as here:
        await here.approve("s.1.0.1.0.1")
        result = await (await here.resume("s")).result()

    assert (Status.COMPLETED, "I thank.") == (result.status, result.text)


async def test_a_stopped_tree_that_nobody_drives_ends_at_once(tmp_path):
    calls = 'reply = [{ calls = [{ name = "deploy" }] }, { text = "I deployed." }]'
    async with runtime(tmp_path) as here:
        await (await here.start(scripted(ASKS, helper(calls, deploy)), "go", id="s")).result()
    async with runtime(tmp_path) as here:
        receipt = await here.stop("s")
        child = await here.session("s.1.0").result()

    assert ("stopped", Status.STOPPED) == (receipt.status, child.status)


async def test_gather_waits_for_all_in_their_order(tmp_path):
    async with runtime(tmp_path) as here:
        first = await here.start(HELLO, "go")
        results = await here.gather(first, here.start(helper(), "help"))

    assert ["Good evening.", "I helped."] == [each.text for each in results]


def test_the_files_of_agents_are_relative_to_the_file_that_names_them(tmp_path):
    folder = tmp_path / "agents"
    folder.mkdir()
    written(folder, "one")
    written(folder, "two")
    path = written(folder, "lead", 'tools = ["agent:one.toml"]\nagents = ["two.toml"]')

    spec = Agent.from_file(path).spec()

    names = ["one", "delegate", "child_result"]
    assert names == [tool.name for tool in spec.tools]
    assert ["agent:one", ANY_AGENT, ASK_CHILD] == [tool.target for tool in spec.tools]
    assert {"one", "two"} == set(spec.agents)
    assert {name: name for name in names} == Agent.from_file(path).tool_names()


def test_an_agent_whose_model_chooses_no_mode_asks_for_no_results():
    assert ["helper"] == [tool.name for tool in scripted(ASKS, helper()).spec().tools]


def test_agents_may_start_each_other(tmp_path):
    written(tmp_path, "one", 'agents = ["two.toml"]')
    written(tmp_path, "two", 'agents = ["one.toml"]')

    assert {"one", "two"} == set(Agent.from_file(tmp_path / "one.toml").spec().agents)


def test_two_agents_of_one_name_are_refused():
    with pytest.raises(ConfigError, match="two agents are called 'helper': rename one"):
        scripted(ASKS, helper(), agents=[helper(instructions="Other.")]).spec()


def test_the_agents_of_children_are_recorded_with_their_tools():
    lead = scripted(ASKS, helper("reply = []", deploy))

    spec = lead.spec()

    assert ["deploy"] == [tool.name for tool in spec.agents["helper"].tools]


def test_how_long_a_call_waits_for_its_child_can_be_set():
    waits = {"helper": cueline.ToolSettings(timeout_seconds=9)}

    assert 9 == scripted(ASKS, helper(), tool_settings=waits).spec().tools[0].timeout_seconds


def test_a_child_can_be_left_alone_after_its_time():
    leaves = {"helper": cueline.ToolSettings(on_timeout="leave")}

    assert "leave" == scripted(ASKS, helper(), tool_settings=leaves).spec().tools[0].on_timeout


def test_only_a_child_can_be_left_alone_after_its_time():
    leaves = {"deploy": cueline.ToolSettings(on_timeout="leave")}
    lead = scripted("reply = []", deploy, tool_settings=leaves)

    with pytest.raises(ConfigError, match="on_timeout': the tool 'deploy' starts no child session"):
        lead.spec()
