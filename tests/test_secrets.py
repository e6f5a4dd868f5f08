"""No secret that cueline knows is ever recorded, wherever it comes from (I11, 002-013, 002-027)."""

import asyncio
import base64
import json
import traceback
from datetime import UTC, datetime
from urllib.parse import quote, quote_plus

import pytest
from pydantic import SecretStr
from typer.testing import CliRunner

import cueline
from cueline.actors.model_port import ModelRequest
from cueline.agents.preflight import agent_to_record
from cueline.agents.secret import secret_names, secret_values
from cueline.cli import app
from cueline.client.keys import set_key
from cueline.config.environment import HERE, user_name
from cueline.errors import ConfigError, CuelineError
from cueline.events.agent import AgentSpec
from cueline.events.sanitize import Redactor
from cueline.providers.anthropic.connection import AnthropicClient
from cueline.providers.anthropic.provider import PROVIDER
from cueline.providers.factory import account_for
from cueline.providers.key_store import KeyStore
from cueline.runtime.open_log import open_log
from tests.scripted import HELLO

NAMED = 'c4nary/s3cr3t+value "é"'
KEY = "sk-ant-api03-0123456789-c4nary_abc"
OWN = "0wn.c4nary-0123456789"
STORED = "sk-st0red-c4nary-0123456789"
MASTER = base64.b64encode(b"c4nary of thirty-two whole bytes").decode()
PLANTED = f"{NAMED} {KEY} {OWN} {STORED} {MASTER}"
REPLIES = [
    {
        "text": f"Hm, {PLANTED}.",
        "thinking": PLANTED,
        "calls": [
            {"name": "leak", "arguments": {"text": PLANTED}},
            {"name": "fail", "arguments": {}},
            {"name": "list_files", "arguments": {}},
            {"name": "invented", "arguments": {PLANTED: 1}},
            {"name": "fail", "arguments": {"wrong": PLANTED}},
            {"name": "fail", "malformed": "{" + PLANTED},
        ],
    },
    {"calls": [{"name": "deliver", "arguments": {"text": PLANTED}}]},
    {"turn": 3, "attempt": 1, "fail": {"kind": "overloaded", "message": PLANTED}},
    {"turn": 3, "text": f"Done with {PLANTED}."},
]


@cueline.tool(read_only=True)
async def leak(text: str) -> str:
    """Repeat what must not be repeated, so often that it goes to a blob."""
    return f"{' '.join(forms())} {text} {'x' * 20_000} {PLANTED} {'y' * 60_000}"


@cueline.tool(read_only=True)
async def fail() -> str:
    """Quote it in an error."""
    raise ConnectionError(f"no entry for {PLANTED}")


@cueline.tool(sensitive=True)
async def deliver(text: str) -> str:
    """Ask a person first."""
    return text


def forms():
    """Spell each secret in every way that is likely to turn up."""
    for secret in (NAMED, KEY, OWN, STORED, MASTER):
        encoded = base64.b64encode(secret.encode()).decode()
        yield from (secret, encoded, quote(encoded, safe=""))
        yield from (quote(secret), quote(secret, safe=""), quote_plus(secret))
        yield from (json.dumps(secret)[1:-1], json.dumps(json.dumps(secret))[2:-2])


def found_in(content):
    return [form for form in forms() if form.encode() in content]


@pytest.fixture
def planted(monkeypatch, tmp_path):
    """Put secrets into the environment, and one among the stored keys."""
    monkeypatch.setenv("CUELINE_KEYS_FOLDER", str(tmp_path / "keys"))
    monkeypatch.setenv("CUELINE_ENCRYPTION_KEY", MASTER)
    set_key("openai", SecretStr(STORED), user="ann", now=datetime.now(UTC))
    monkeypatch.delenv("CUELINE_ENCRYPTION_KEY")
    (tmp_path / "keys" / "master.key").write_text(f"{MASTER}\n")
    (tmp_path / "keys" / "master.key").chmod(0o600)
    monkeypatch.setenv("SHOP_PASSWORD", NAMED)
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setenv("OWN_KEY", OWN)


@pytest.fixture
def agent(tmp_path, planted):
    workspace = tmp_path / "workspace"
    workspace.mkdir()
    (workspace / f"{KEY}.txt").write_text(PLANTED)
    return cueline.Agent(
        name="leaker",
        provider="scripted",
        model="leak",
        instructions=f"Say nothing of {PLANTED}.",
        parameters={"script": f"reply = {toml(REPLIES)}"},
        tools=[leak, fail, deliver, "list_files"],
        workspace=workspace,
        secrets=("SHOP_PASSWORD",),
        key_variable="OWN_KEY",
        retry=cueline.RetryPolicy(base_seconds=0.01),
    )


def toml(value):
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {toml(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(map(toml, value)) + "]"
    return json.dumps(value)


@pytest.fixture
def log(tmp_path, agent):
    """The log of a session that had secrets planted wherever something comes from outside."""
    path = tmp_path / "log" / "log.db"
    asyncio.run(plant(path, agent))
    return path


async def plant(path, agent):
    async with cueline.open_runtime(path, on="inline") as runtime:
        session = await runtime.start(agent, f"Use {PLANTED}.", id="one", labels={"key": PLANTED})
        asked = [fact async for _, fact in session.events() if fact.type == "ApprovalRequested"]
        await session.send(f"Forget {PLANTED}.")
        await session.approve(asked[-1], by=f"ann {KEY}", note=f"fine, {PLANTED}")
        assert "completed" == (await session.result()).status
        await session.stop(PLANTED)


def claude(**fields):
    usual = {"provider": "anthropic", "base_url": "http://127.0.0.1:9", "key_variable": "OWN_KEY"}
    return AgentSpec(name="a", model="m", **{**usual, **fields})


def shown(thing):
    """Show an object of ours with all that it holds, whoever made that."""
    return repr(thing) + repr(getattr(thing, "__dict__", ""))


def test_what_holds_a_secret_does_not_show_it(agent):
    # 002-013: no `repr`, and no debugger that lists what an object holds.
    account = account_for(claude(), HERE)
    values = secret_values(secret_names(agent), HERE)
    things = [
        HERE,
        values,
        Redactor(values),
        account,
        AnthropicClient(account),
        PROVIDER.make(account, None),
        account_for(claude(provider="openai", key_variable=None, key_owner="ann"), HERE),
        KeyStore(HERE),
        KeyStore(HERE).rows(),
        KeyStore(HERE).secrets(),
    ]

    assert {OWN, KEY, NAMED} == {value.get_secret_value() for value in values}
    assert [] == found_in("".join(map(shown, things)).encode())


async def call():
    request = ModelRequest(
        "session-default/s", "1.m", 1, 1, claude(), [b'{"role":"user","text":""}']
    )
    await PROVIDER.make(account_for(claude(), HERE), None).reply(request)


async def take_a_bad_key():
    account_for(claude(key_variable="SHOP_PASSWORD"), HERE)


@pytest.mark.parametrize("work", [call, take_a_bad_key])
@pytest.mark.usefixtures("planted")
async def test_a_traceback_with_its_locals_shows_no_secret(work):
    # 002-013
    with pytest.raises(CuelineError) as raised:
        await work()

    told = traceback.TracebackException.from_exception(raised.value, capture_locals=True)
    assert [] == found_in("".join(told.format()).encode())


async def test_an_open_log_does_not_tell_its_environment(tmp_path, agent):
    async with open_log(tmp_path / "other.db") as log:
        assert [] == found_in(repr(log).encode())


def test_a_secret_is_in_no_file_of_the_log(log):
    files = {path.name: path.read_bytes() for path in log.parent.iterdir()}

    assert {"log.db", "log.db-views.db", "log.db.presence"} <= files.keys()
    assert {} == {name: found for name, held in files.items() if (found := found_in(held))}
    assert 20 < files["log.db"].count(b"[redacted]")


@pytest.mark.parametrize(
    "words",
    [["export"], ["export", "--format", "events"], ["show"], ["tail"], ["replay"]],
    ids=" ".join,
)
def test_a_secret_is_in_nothing_that_is_printed(log, words):
    done = CliRunner().invoke(app, [words[0], "one", *words[1:], "--log", str(log)])

    assert (0, []) == (done.exit_code, found_in(done.output.encode()))
    assert "[redacted]" in done.output


# What is looked for in all that is recorded has to be rare in it: a PIN is not.
@pytest.mark.parametrize(
    ("environ", "why"),
    [
        ({}, "is not set here"),
        ({"PIN": ""}, "is not set here"),
        ({"PIN": "1234567"}, "is shorter than 8 characters"),
        ({"PIN": " 1234567\n"}, "is shorter than 8 characters"),
    ],
)
def test_a_secret_that_cannot_be_taken_out_is_refused_unless_it_is_waived(environ, why):
    agent = HELLO.model_copy(update={"secrets": ("PIN",)})

    with pytest.raises(ConfigError, match=f"PIN: {why}.*--without-secret PIN"):
        agent_to_record(agent, environ)
    assert ("PIN",) == agent_to_record(agent, environ, waived=["PIN"]).secrets
    assert ("PIN",) == agent_to_record(agent, {"PIN": "12345678"}).secrets


async def test_a_program_starts_and_resumes_without_a_secret_by_saying_so(tmp_path, monkeypatch):
    monkeypatch.setenv("FIRST_PIN", "12345678")
    agent = HELLO.model_copy(update={"secrets": ("FIRST_PIN", "PIN")})
    async with cueline.open_runtime(tmp_path / "log.db", on="inline") as runtime:
        with pytest.raises(ConfigError, match="PIN: is not set here"):
            await runtime.start(agent, "Hi", open=True, id="one")
        with pytest.raises(ConfigError, match="OTHER is no secret of"):
            await runtime.start(agent, "Hi", open=True, id="one", without_secrets=["PIN", "OTHER"])
        session = await runtime.start(agent, "Hi", open=True, id="one", without_secrets=["PIN"])
        await session.result()
    monkeypatch.delenv("FIRST_PIN")
    async with cueline.open_runtime(tmp_path / "log.db", on="inline") as runtime:
        with pytest.raises(ConfigError, match="FIRST_PIN: is not set here"):
            await runtime.resume("one")
        session = await runtime.resume("one", without_secrets=["FIRST_PIN"])
        read = [fact async for _, fact in session.events() if fact.type == "MessageReceived"]

    waived = [fact.message for fact in read if fact.message.type == "SecretsWaived"]
    assert [("PIN",), ("FIRST_PIN",)] == [fact.names for fact in waived]
    assert {user_name()} == {fact.by for fact in waived}
    async with open_log(tmp_path / "log.db", must_exist=True) as log:
        posted = [event async for event in log.store.read("inbox-default/one")]
    assert {f"user:{user_name()}"} == {each.actor for each in posted}
