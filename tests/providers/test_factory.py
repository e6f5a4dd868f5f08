"""Which model an agent gets, and what is checked before."""

import subprocess
import sys

import pytest

from cueline.errors import ConfigError
from cueline.events.agent import Fallback
from cueline.providers.defaults import completed
from cueline.providers.factory import (
    account_for,
    account_names,
    check_agent,
    check_recorded_agent,
    model_factory,
)
from cueline.providers.lazy_model import CountingModel
from cueline.providers.registry import known_providers, providers, secret_variables
from cueline.providers.replay.provider import Recording
from cueline.providers.scripted.model import ScriptedModel
from tests.adapters import shop

SCRIPT = '[[reply]]\ntext = "one"'
KEYS = {"ANTHROPIC_API_KEY": "sk-test-0123456789"}


async def pause(_seconds):
    raise AssertionError


@pytest.fixture
def claude(agent):
    return lambda **fields: agent(**{"provider": "anthropic", "model": "claude-opus-4-6", **fields})


def test_a_scripted_agent_needs_no_key(agent):
    model = model_factory({}, pause)(agent(parameters={"script": SCRIPT}))

    assert isinstance(model, ScriptedModel)


async def test_agents_of_one_key_and_address_share_their_connections(claude):
    make = model_factory({**KEYS, "OTHER_KEY": "sk-other-0123456789"}, pause)
    gateway = claude(base_url="http://127.0.0.1:1")

    first, again, elsewhere = make(claude()), make(claude(name="b")), make(gateway)

    assert isinstance(first, CountingModel)
    assert first is again
    assert first not in {elsewhere, make(claude(key_variable="OTHER_KEY"))}


def test_an_unknown_provider_is_named_with_those_that_are_known(agent):
    with pytest.raises(ConfigError, match=r"'antropic' is unknown: did you mean 'anthropic'\?"):
        check_agent(agent(provider="antropic"), KEYS)


def test_every_known_provider_can_be_made(agent):
    keys = {each.endpoint.key_variable for each in providers() if each.endpoint is not None}
    make = model_factory(dict.fromkeys(keys, KEYS["ANTHROPIC_API_KEY"]), pause)

    parameters = {"script": SCRIPT, **Recording(session="one", version=1).as_parameters()}
    other = {"pydantic_ai": {"model": f"{shop.__file__}:agent"}}  # its model is one of these
    for provider in known_providers():
        assert make(agent(provider=provider, parameters=parameters, **other.get(provider, {})))


@pytest.mark.parametrize("environ", [{}, {"ANTHROPIC_API_KEY": " "}])
def test_a_missing_key_is_named_by_its_variable(claude, environ):
    with pytest.raises(ConfigError, match=r"^ANTHROPIC_API_KEY: is not set; put the key there"):
        check_agent(claude(), environ)


def test_a_key_that_is_not_needed_is_not_sent_in_the_clear(agent):
    keys = {"OPENAI_API_KEY": "sk-test-0123456789"}

    def key_at(url):
        return account_for(agent(provider="openai", base_url=url), keys).key.get_secret_value()

    assert "" == key_at("http://gpu-box:8000/v1")
    assert [keys["OPENAI_API_KEY"]] * 2 == [
        key_at("http://127.0.0.1:1"),
        key_at("https://a.example"),
    ]


# 002-006, 002-026: a self-hoster needs no third party.
def test_a_server_elsewhere_may_need_no_key(agent):
    local = agent(provider="openai", base_url="http://127.0.0.1:8000/v1")

    assert not account_for(local, {}).key
    with pytest.raises(ConfigError, match=r"^OPENAI_API_KEY: is not set"):
        account_for(agent(provider="openai"), {})
    with pytest.raises(ConfigError, match=r"^TEAM_KEY: is not set"):
        account_for(local.model_copy(update={"key_variable": "TEAM_KEY"}), {})


@pytest.mark.parametrize(
    ("environ", "key"),
    [
        ({"GOOGLE_API_KEY": "google"}, "google"),
        ({"GEMINI_API_KEY": " ", "GOOGLE_API_KEY": "google"}, "google"),
        ({"GEMINI_API_KEY": "gemini", "GOOGLE_API_KEY": "google"}, "gemini"),
    ],
)
def test_gemini_reads_either_variable_of_its_vendor(agent, environ, key):
    account = account_for(agent(provider="gemini"), environ)

    assert key == account.key.get_secret_value()
    assert "gemini" == completed(None, None, environ, "")[0]
    assert "GOOGLE_API_KEY" in secret_variables()


def test_a_missing_key_is_named_by_the_agents_own_variable(claude):
    with pytest.raises(ConfigError, match=r"^TEAM_KEY: is not set"):
        check_agent(claude(key_variable="TEAM_KEY"), KEYS)


def test_a_key_that_cannot_be_one_is_not_shown(claude):
    with pytest.raises(ConfigError) as caught:
        check_agent(claude(), {"ANTHROPIC_API_KEY": "sk-bad\nkey"})

    assert "sk-bad" not in str(caught.value)


@pytest.mark.parametrize("url", ["api.example.com", "ftp://a", "http://u:pw@a", "http://a:b"])
def test_an_address_that_cannot_be_one_is_named(claude, url):
    with pytest.raises(ConfigError, match="base_url"):
        check_agent(claude(base_url=url), KEYS)


# I11: whoever is on the way would read it.
@pytest.mark.parametrize("host", ["there", "127.0.0.1.example", "[2001:db8::1]"])
def test_a_key_is_not_sent_in_the_clear(claude, host):
    reason = r"base_url: 'http://.*' would get the value of TEAM_KEY over a network, readable"

    with pytest.raises(ConfigError, match=reason):
        check_agent(claude(base_url=f"http://{host}/", key_variable="TEAM_KEY"), KEYS)


def test_a_script_with_a_mistake_is_found_before_the_start(agent, tmp_path):
    (tmp_path / "demo.toml").write_text("[[reply]]\ntxt = 1")

    with pytest.raises(ConfigError, match=r"demo\.toml: reply 1 has the unknown key 'txt'"):
        check_agent(agent(model=str(tmp_path / "demo.toml")), {})


def test_a_parameter_that_is_not_sent_is_found_before_the_start(claude):
    with pytest.raises(ConfigError, match=r"parameters\.max_tokens"):
        check_agent(claude(parameters={"max_tokens": 1}), KEYS)


def test_what_is_in_order_is_let_pass(claude, agent):
    check_agent(claude(), KEYS)
    check_agent(agent(parameters={"script": SCRIPT}), {})


def test_a_key_is_not_shown_with_the_model_that_uses_it(claude):
    model = model_factory(KEYS, pause)(claude())

    assert "sk-test" not in repr(vars(model))


def test_what_is_slow_to_load_is_loaded_when_it_is_used():
    code = "import sys, cueline.providers.factory; print(*sys.modules)"

    loaded = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout

    assert set() == {b"anthropic", b"httpx2", b"genai_prices"} & set(loaded.split())


def test_a_gateway_is_told_from_the_vendor(claude):
    assert account_for(claude(), KEYS).is_vendor
    assert not account_for(claude(base_url="http://127.0.0.1:1"), KEYS).is_vendor


def test_the_address_is_the_agents_or_else_the_environments(claude):
    environ = {**KEYS, "ANTHROPIC_BASE_URL": "http://127.0.0.1:2/"}

    assert "http://127.0.0.1:2" == account_for(claude(), environ).base_url
    assert "http://[::1]:3/v" == account_for(claude(base_url="http://[::1]:3/v"), environ).base_url


# 004-057: who shares an account shares its breakers; nobody learns the key from its name.
def test_an_account_is_named_by_its_key_and_address_without_telling_them(claude):
    name = account_names({**KEYS, "OTHER_KEY": "sk-other-0123456789"}, salt="log-1")
    ours, again = name(claude()), name(claude(name="b", model="claude-other"))

    others = [claude(key_variable="OTHER_KEY"), claude(base_url="http://127.0.0.1:1")]
    elsewhere = account_names(KEYS, salt="log-2")(claude())
    assert ours == again
    assert ours not in {elsewhere, *map(name, others)}
    assert 8 == len(ours)


def test_an_agent_without_its_key_has_no_account_yet(claude, agent):
    name = account_names({}, salt="log-1")

    assert ["", ""] == [name(claude()), name(agent())]


def test_a_session_starts_only_where_each_of_its_models_can_be_asked(claude):
    other = Fallback(provider="anthropic", model="m", key_variable="OTHER_KEY")

    with pytest.raises(ConfigError, match="OTHER_KEY: is not set"):
        check_agent(claude(fallback=(other,)), KEYS)


def test_it_goes_on_where_one_of_them_can(claude):
    other = Fallback(provider="anthropic", model="m", key_variable="OTHER_KEY")

    check_recorded_agent(claude(fallback=(other,)), KEYS)
    check_recorded_agent(claude(fallback=(other,)), {"OTHER_KEY": "sk-other-0123456789"})
    with pytest.raises(ConfigError, match="ANTHROPIC_API_KEY: is not set"):
        check_recorded_agent(claude(fallback=(other,)), {})
