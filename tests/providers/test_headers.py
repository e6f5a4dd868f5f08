"""Headers and a query of one's own, for the servers that want them."""

import pytest

from cueline.agents.secret import secret_names
from cueline.cli.settings_context import read
from cueline.errors import ConfigError, ProviderRefusedError
from cueline.events.agent import AgentSpec, Fallback
from cueline.events.message import UserMessage
from cueline.providers.factory import account_for, account_names
from cueline.providers.registry import provider_named

SECRET = "hunter2-hunter2"
ENVIRON = {
    "ANTHROPIC_API_KEY": "sk-test-0123456789",
    "GEMINI_API_KEY": "sk-test-0123456789",
    "TEAM_KEY": SECRET,
}
HEADERS = {"X-Team": "shop", "api-key": "$TEAM_KEY", "Authorization": "Bearer $TEAM_KEY"}
PATHS = {
    "anthropic": ("/v1/messages", ""),
    "gemini": ("/v1beta/models/m:streamGenerateContent", "alt=sse&"),
    "ollama": ("/api/chat", ""),
    "openai": ("/chat/completions", ""),
}
URL = "https://a.example.com"


def spec(provider="openai", **fields):
    return AgentSpec(**{"name": "a", "provider": provider, "model": "m", "base_url": URL, **fields})


@pytest.fixture
async def ask(request_for):
    models = []

    async def ask_model(**fields):
        models.append(
            provider_named(fields["provider"]).make(account_for(spec(**fields), ENVIRON), None)
        )
        request = request_for(messages=(UserMessage(text="hi"),), **{"model": "m", **fields})
        return await models[-1].reply(request)

    yield ask_model
    for model in models:
        await model.close()


@pytest.mark.parametrize("provider", PATHS)
async def test_headers_and_query_go_with_each_request(vendor, ask, provider):
    vendor.will_fail(400, f'{{"error": {{"message": "{SECRET} is bad"}}}}'.encode())

    with pytest.raises(ProviderRefusedError, match="is bad") as caught:
        await ask(provider=provider, base_url=f"{vendor.url}/?api-version=1&x=2", headers=HEADERS)

    path, more = PATHS[provider]
    sent = {name.lower(): value for name, value in vendor.headers[0].items()}
    assert [f"{path}?{more}api-version=1&x=2"] == vendor.paths
    assert ("shop", SECRET, f"Bearer {SECRET}") == (
        sent["x-team"],
        sent["api-key"],
        sent["authorization"],
    )
    assert SECRET not in caught.value.message
    assert 1 == sum(name.lower() == "authorization" for name in vendor.headers[0])


def test_only_the_name_of_a_variable_is_recorded_and_its_value_is_hidden():
    other = Fallback(provider="openai", model="m", headers={"x-token": "$OTHER_TOKEN"})
    agent = spec(headers=HEADERS, fallback=(other,))

    assert SECRET not in agent.model_dump_json()
    assert {"TEAM_KEY", "OTHER_TOKEN"} <= secret_names(agent)
    assert SECRET not in repr(account_for(agent, ENVIRON))


@pytest.mark.parametrize(
    ("fields", "told"),
    [
        ({"headers": {"x-api-key": "sk-123"}}, "headers: 'x-api-key' would be recorded"),
        ({"headers": {"Authorization": "Bearer abc"}}, "headers: 'Authorization' would be"),
        ({"headers": {"x y": "z"}}, "headers: 'x y' is no header"),
        ({"headers": {"x": "a\nb"}}, "headers: 'x' is no header"),
        ({"headers": {"x": "$NOT_SET"}}, "NOT_SET: is not set"),
        ({"headers": {"x": "$TEAM_KEY"}, "base_url": "http://a.example.com"}, "of TEAM_KEY over"),
        ({"base_url": f"{URL}?key=abc"}, "base_url: has 'key' in its query"),
        ({"base_url": f"{URL}#part"}, "base_url"),
    ],
)
def test_what_would_tell_a_secret_is_refused(fields, told):
    with pytest.raises(ConfigError, match=told):
        account_for(spec(**fields), ENVIRON)


def test_an_account_is_told_from_others_by_its_headers():
    name = account_names(ENVIRON, salt="s")

    assert name(spec()) != name(spec(headers={"api-key": "$TEAM_KEY"}))


def test_the_settings_may_have_headers(tmp_path):
    file = tmp_path / "cueline.toml"
    file.write_text('provider = "openai"\n[headers]\napi-key = "$TEAM_KEY"\n')

    outside = read(file)

    assert {"api-key": "$TEAM_KEY"} == outside.settings.headers
    assert "TEAM_KEY" in outside.secrets
