"""The MCP servers that an agent's file names, and the file of other clients."""

import json

import pytest
from pydantic import ValidationError

from cueline.agents.agent import Agent
from cueline.agents.mcp_servers import servers_in
from cueline.agents.secret import secret_names
from cueline.errors import ConfigError
from cueline.events.agent_parts import McpOAuth, McpServer


def agent(**more):
    return Agent(name="clerk", provider="scripted", model="script.toml", **more)


@pytest.mark.parametrize(
    ("name", "server", "why"),
    [
        ("a__b", {"command": ["serve"]}, "up to 32 letters"),
        ("a", {}, "needs a `command` (a list) or a `url`"),
        ("a", {"command": ["serve"], "url": "http://x/mcp"}, "and not both"),
        ("a", {"url": "ftp://x/mcp"}, "'ftp://x/mcp' is no http address"),
        ("a", {"url": "http://me:secret@x/mcp"}, "without user and password"),
        ("a", {"url": "http://x/mcp", "env": {"A": "b"}}, "takes `headers`"),
        ("a", {"command": ["serve"], "headers": {"A": "b"}}, "takes `env`"),
        ("a", {"command": ["serve"], "env": {"API_KEY": "abc"}}, "write $API_KEY"),
        ("a", {"url": "http://x/mcp", "headers": {"Authorization": "abc"}}, "would be recorded"),
        ("a", {"command": ["serve"], "oauth": True}, "`oauth` is for a url"),
        ("a", {"url": "http://x/mcp", "oauth": {"client_secret": "abc"}}, "write $NAME"),
    ],
)
def test_a_server_that_cannot_be_meant_is_refused_by_name(name, server, why):
    with pytest.raises(ValidationError) as refused:
        agent(mcp={name: server})
    assert why in str(refused.value)


def test_a_login_is_named_by_true_or_by_a_client():
    own = {"client_id": "me", "client_secret": "$ITS_SECRET"}
    given = {"on": True, "off": False, "own": own}
    servers = {name: {"url": "http://x/mcp", "oauth": each} for name, each in given.items()}
    named = agent(mcp=servers)

    assert [McpOAuth(), None] == [named.mcp[name].oauth for name in ("on", "off")]
    assert "me" == named.mcp["own"].oauth.client_id
    assert "ITS_SECRET" in secret_names(named)


def write(path, **servers):
    path.write_text(json.dumps({"mcpServers": servers}))
    return path


def test_the_file_of_other_clients_has_the_same_servers(tmp_path):
    local = {"command": "npx", "args": ["-y", "x"], "env": {"TOKEN": "${GITHUB_TOKEN}"}}
    far = {"type": "http", "url": "https://x/mcp", "headers": {"Authorization": "Bearer ${KEY}"}}
    found = servers_in(write(tmp_path / ".mcp.json", local=local, far=far))
    assert McpServer(command=("npx", "-y", "x"), env={"TOKEN": "$GITHUB_TOKEN"}) == found["local"]
    assert {"Authorization": "Bearer $KEY"} == found["far"].headers
    assert {"GITHUB_TOKEN", "KEY"} <= secret_names(agent(mcp=found))


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (None, "cannot be read"),
        ("[]", "not of the form"),
        ("{", "Expecting"),
        ('{"mcpServers": {"a": {"type": "sse", "url": "http://x"}}}', "sse is deprecated"),
        ('{"mcpServers": {"a": {"command": "x", "oauth": {}}}}', "the key 'oauth'"),
        ('{"mcpServers": {"a": {"command": "x", "env": {"API_KEY": "b"}}}}', "write $API_KEY"),
        ('{"mcpServers": {"a": {"url": 3}}}', "url"),
    ],
)
def test_a_file_that_cannot_be_meant_is_refused(tmp_path, content, why):
    path = tmp_path / ".mcp.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(ConfigError) as refused:
        servers_in(path)
    assert why in str(refused.value)


def test_a_server_that_is_switched_off_is_left_out(tmp_path):
    path = write(tmp_path / ".mcp.json", a={"command": "x"}, b={"command": "y", "disabled": True})

    assert ["a"] == list(servers_in(path))


def test_a_server_that_is_in_both_places_is_refused(tmp_path):
    path = write(tmp_path / ".mcp.json", a={"command": "x"})
    both = agent(mcp={"a": {"command": ["y"]}}, mcp_config=path)
    with pytest.raises(ConfigError, match=r"mcp\.a"):
        both.mcp_servers()
