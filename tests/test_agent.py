"""An agent file, and what its author is told."""

import re

import pytest
from pydantic import SecretStr, ValidationError

from cueline.agents.agent import Agent
from cueline.agents.secret import secret_names, secret_values
from cueline.agents.workflow import Workflow
from cueline.errors import ConfigError
from cueline.events.agent import Hook, Policy
from cueline.events.agent_parts import NO_DEMANDS, BreakerPolicy, Demands, RetryPolicy


def test_a_typo_in_a_key_that_is_needed_is_named(tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text('name = "clerk"\nprovidr = "scripted"\nmodel = "script.toml"\n')

    with pytest.raises(ConfigError, match="key 'providr': it is unknown"):
        Agent.from_file(file)


def test_a_price_list_is_read_exactly(tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text(
        'name = "clerk"\nprovider = "scripted"\nmodel = "script.toml"\n'
        '[prices."scripted/*"]\ninput = "3.10"\noutput = 15\n'
    )

    price = Agent.from_file(file).prices["scripted/*"]

    assert ("3.10", "15") == (str(price.input), str(price.output))


def test_a_typo_in_a_price_is_named_with_the_keys_that_are_known(tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text(
        'name = "clerk"\nprovider = "scripted"\nmodel = "script.toml"\n'
        '[prices."scripted/*"]\ninput = "3.00"\noutputs = 15\n'
    )

    with pytest.raises(
        ConfigError, match=r"'output'\? Known in .* are cache_read, cache_write, input, output"
    ):
        Agent.from_file(file)


# C14: with a limit of money, costs are asked about, too, unless the file says otherwise.
@pytest.mark.parametrize(
    ("limits", "policy", "approval"),
    [
        ({}, {}, ("sensitive",)),
        ({"max_cost": "2.50"}, {}, ("sensitive", "cost")),
        ({"max_cost": "2.50"}, {"approval": "off"}, ("off",)),
        ({"max_cost": "2.50"}, {"in_doubt": "tell"}, ("sensitive", "cost")),
    ],
)
def test_a_limit_of_money_brings_the_rules_of_cost(limits, policy, approval):
    agent = Agent.model_validate(
        {"name": "a", "provider": "scripted", "model": "m", "limits": limits, "policy": policy}
    )

    assert approval == agent.spec().policy.approval


def test_a_policy_that_cannot_be_meant_is_refused_with_its_key():
    policy = {"rules": [{"name": "r", "answer": "ask", "tools": ["nothing_like_it"]}]}
    agent = Agent.model_validate(
        {"name": "a", "provider": "scripted", "model": "m", "policy": policy}
    )

    with pytest.raises(ConfigError, match=r"policy\.rules\.0\.tools.*no tool of the agent"):
        agent.spec()


def test_a_rule_of_a_workflow_names_steps():
    policy = {"rules": [{"name": "r", "answer": "ask", "tools": ["read_file"]}]}
    step = {"name": "look", "tool": "read_file", "arguments": {"path": "a"}}
    flow = Workflow.model_validate({"name": "a", "steps": [step], "policy": policy})

    with pytest.raises(ConfigError, match="no step of the workflow, whose rules name steps,"):
        flow.spec()


FILE = """
name = "clerk"
provider = "scripted"
model = "script.toml"
tools = ["read_file"]
retry = "exact"

[tool_settings.read_file]
retry = { max_retries = 7 }

[[fallback]]
provider = "openai"
model = "other"
key_variable = "GROQ_API_KEY"
"""


def written(tmp_path, text=FILE):
    file = tmp_path / "agent.toml"
    file.write_text(text)
    return file


def test_a_file_says_who_is_asked_next_and_how_often(tmp_path):
    spec = Agent.from_file(written(tmp_path)).spec()

    assert RetryPolicy.named("exact") == spec.retry
    assert 7 == spec.tools[0].retry.max_retries
    assert ["other"] == [other.model for other in spec.fallback]


@pytest.mark.parametrize(
    ("right", "wrong", "told"),
    [
        ('"exact"', '"heroic"', "key 'retry': .*no preset 'heroic'; presets are standard"),
        (
            "key_variable",
            "key",
            r"'fallback.0.key': it is unknown; known in \[fallback.0\] are base_url",
        ),
        ("settings.read_file", "settings.raed", "no tool 'raed'; it has read_file"),
        ('["read_file"]', "[3]", "key 'tools.0': 3 is no text; put quotes around it"),
        ('["read_file"]', "[[]]", "key 'tools.0': a list is no text"),
        ('["read_file"]', '"read_file"', "key 'tools': this text is no list; put brackets"),
        ('["read_file"]', '["raed_file"]', "key 'tools': 'raed_file' .*did you mean 'read_file'?"),
        ('["read_file"]', '["read_file", "read_file"]', "key 'tools': two are called 'read_file'"),
        ('"script.toml"', '""', "key 'model': it is empty"),
        (
            '"exact"',
            '"exact"\nparameters = { a = inf }',
            "key 'parameters': nan and inf are no",
        ),
        ("max_retries = 7", "max = 7", r"known in \[tool_settings.read_file.retry\] are base_s"),
        ("max_retries = 7", "max_retries = true", r"read_file.retry.max_retries': true is no num"),
        (
            '"exact"',
            '"exact"\ndemands = { lables = { gpu = "a100" } }',
            "'demands.lables': it is unknown: did you mean 'labels'",
        ),
        (
            '"exact"',
            '"exact"\ndemands = { resources = { gpus = 0 } }',
            "demands.resources.gpus",
        ),
        (
            "{ max_retries = 7 }",
            '"short"\ndemands = { runners = "big" }',
            "read_file.demands.runners': it is unknown: did you mean 'runner'",
        ),
        ("max_retries = 7", "max_retries = 99", "tool_settings.read_file.retry.max_retries"),
    ],
)
def test_a_mistake_in_it_is_named(tmp_path, right, wrong, told):
    with pytest.raises(ConfigError, match=told):
        Agent.from_file(written(tmp_path, FILE.replace(right, wrong))).spec()


def test_a_tool_has_the_demands_that_its_agent_sets_for_it(tmp_path):
    said = "{ max_retries = 7 }\ndemands = { labels = { gpu = 'a100' } }"

    spec = Agent.from_file(written(tmp_path, FILE.replace("{ max_retries = 7 }", said))).spec()

    assert Demands(labels={"gpu": "a100"}) == spec.tools[0].demands
    assert NO_DEMANDS == spec.demands


# I11: a key is a secret whoever it is for.
def test_the_keys_of_every_model_are_secrets(tmp_path):
    spec = Agent.from_file(written(tmp_path)).spec()

    assert "GROQ_API_KEY" in secret_names(spec)


def test_what_a_key_or_a_hook_needs_is_secret_without_being_named():
    # I11, 002-013
    hook = Hook(on="asked", url="$HOOK_URL")
    agent = Agent(
        name="a", provider="p", model="m", key_variable="OWN", policy=Policy(hooks=(hook,))
    )

    assert {"OWN", "HOOK_URL", "ANTHROPIC_API_KEY"} <= secret_names(agent)
    assert [SecretStr("its value")] == secret_values(
        secret_names(agent), {"OWN": "its value", "HOME": "/"}
    )


def test_a_credential_that_tools_see_is_secret_without_being_named():
    agent = Agent(name="a", provider="p", model="m", environment=("GITHUB_TOKEN", "LANG"))

    assert "GITHUB_TOKEN" in secret_names(agent.spec())
    assert "LANG" not in secret_names(agent.spec())


def test_an_agent_file_may_be_named_by_a_string(tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text('name = "a"\nprovider = "anthropic"\nmodel = "claude"\n')

    assert Agent.from_file(file) == Agent.from_file(str(file))


def test_a_file_gives_a_tool_a_breaker(tmp_path):
    text = FILE + "[tool_settings.read_file.breaker]\nthreshold = 2\n"

    spec = Agent.from_file(written(tmp_path, text)).spec()

    assert BreakerPolicy(threshold=2) == spec.tools[0].breaker


def shout(text: str) -> str:
    """Say it loudly."""
    return text.upper()


@pytest.mark.parametrize(
    ("tool", "told"),
    [
        (shout, "shout is a function, not a tool: decorate it with `@cueline.tool`"),
        ({"name": "shout"}, "it is neither a tool nor the name of one"),
    ],
)
def test_what_is_no_tool_is_refused_with_what_to_do(tool, told):
    with pytest.raises(ValidationError, match=re.escape(told)):
        Agent(name="a", provider="scripted", model="m", tools=[tool])


@pytest.mark.parametrize(
    ("declared", "told"),
    [
        ("version=2", "tool shout: version: 2 is no text"),
        ("sensitive='perhaps'", "tool shout: sensitive: 'perhaps' is no truth value"),
        ("tags=[1]", "tool shout: tags.0: 1 is no text"),
        ("breaker=3", "tool shout: breaker: 3 is no table"),
    ],
)
def test_a_tool_that_cannot_be_recorded_is_named_with_the_reason(tmp_path, declared, told):
    code = f"import cueline\n\n@cueline.tool({declared})\ndef shout(text: str) -> str: ...\n"
    (tmp_path / "shout.py").write_text(code)
    agent = Agent(name="a", provider="scripted", model="m", tools=[f"{tmp_path}/shout.py:shout"])

    with pytest.raises(ConfigError, match=told):
        agent.spec()


def test_an_agent_can_start_runs_of_a_blueprint():
    agent = Agent(name="lead", tools=["blueprint:web.crawler"])

    tool, asks = agent.tool_specs()

    assert ("web_crawler", "agent:web.crawler") == (tool.name, tool.target)
    assert ["goal"] == tool.parameters["required"]
    assert ("child_result", False) == (asks.name, asks.runs)
    names = {"blueprint:web.crawler": "web_crawler", "child_result": "child_result"}
    assert names == agent.tool_names()


def test_an_agent_with_parameters_is_no_agent_that_is_given_a_goal():
    child = Agent(name="child", provider="scripted", model="m", parameters_schema={})
    agent = Agent(name="a", provider="scripted", model="m", agents=(child,))

    with pytest.raises(ConfigError, match="child takes parameters, not a goal"):
        agent.spec()


@pytest.mark.parametrize(
    ("http", "asks"),
    [
        ({}, True),
        ({"private": ["localhost:8080"]}, True),
        ({"allow": ["api.example.com"]}, False),
        ({"allow": []}, False),
    ],
)
def test_calls_by_http_are_asked_about_unless_the_file_names_hosts(http, asks):
    agent = Agent(name="clerk", provider="scripted", tools=["http_get", "read_file"], http=http)

    get, read = agent.tool_specs()

    assert (asks, http) == (get.sensitive, get.options)
    assert {} == read.options


def test_a_wrong_rule_for_http_is_named(tmp_path):
    file = tmp_path / "agent.toml"
    file.write_text('name = "clerk"\nprovider = "scripted"\n[http]\nallow = ["https://a/b"]\n')

    with pytest.raises(ConfigError, match=r"'http.allow.*'https://a/b' is no rule for a host"):
        Agent.from_file(file)


def test_a_scheme_before_a_tool_says_what_its_name_says_anyway(tmp_path):
    source = "import cueline\n\n\n@cueline.tool\ndef post(text: str) -> str:\n    return text\n"
    (tmp_path / "post.py").write_text(source)
    file = tmp_path / "agent.toml"

    def targets(*tools):
        file.write_text(f'name = "a"\nprovider = "scripted"\nmodel = "m"\ntools = {[*tools]}\n')
        agent = Agent.from_file(file)
        return [tool.target for tool in agent.spec().tools], [*agent.tool_names().values()]

    plain = targets("read_file", "cueline.tools.todo:todo", "post.py:post")

    assert plain == targets(
        "builtin:read_file", "python:cueline.tools.todo:todo", "file:post.py:post"
    )
    assert ["read_file", "todo", "post"] == plain[1]


def test_a_custom_tool_has_a_name_that_models_take():
    tools = {"look up": {"description": "Look.", "command": ["ls"]}}

    with pytest.raises(ValidationError, match="'look up' is no name for a tool"):
        Agent.model_validate({"name": "a", "custom_tools": tools})


def test_a_variable_in_the_headers_of_a_custom_tool_is_a_secret_of_the_agent():
    headers = {"Authorization": "Bearer $SHOP_TOKEN"}
    shop = {"description": "Ask.", "url": "https://a.example", "headers": headers}
    asked = {"name": "a", "provider": "scripted", "model": "m", "custom_tools": {"shop": shop}}

    with pytest.raises(ConfigError, match=r"custom_tools\.shop\.headers.*name SHOP_TOKEN"):
        Agent.model_validate(asked).spec()

    (tool,) = Agent.model_validate(asked | {"secrets": ["SHOP_TOKEN"]}).spec().tools
    assert {"headers": headers} == {"headers": tool.options["headers"]}


def test_a_workflow_calls_a_custom_tool_by_its_name():
    tools = {"look": {"description": "Look.", "command": ["ls", "{folder}"]}}
    steps = [{"name": "first", "tool": "look", "arguments": {"folder": "x"}}]
    flow = Workflow.model_validate({"name": "a", "steps": steps, "custom_tools": tools})

    (tool,) = flow.spec().tools

    assert ("first", "command:ls '{folder}'") == (tool.name, tool.target)
