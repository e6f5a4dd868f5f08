"""Another model in the middle of a session, as a program asks for it."""

import pytest

import cueline
from cueline.agents.preflight import chosen_model
from cueline.errors import ConfigError, SessionFinishedError
from tests.scripted import HELLO, scripted

OTHER = 'reply = [{ text = "No." }, { text = "From the other." }]'


def other(**fields):
    return cueline.ModelChoice(
        provider="scripted", model="other", parameters={"script": OTHER}, **fields
    )


async def inbox_of(log):
    return [fact.type async for _, fact in log.journal().read("inbox-default/one")]


# 002-021
async def test_the_next_reply_is_the_other_models(runtime, log):
    async with runtime() as here:
        session = await here.start(HELLO, "Go", id="one", open=True)
        await session.result()
        receipt = await session.send("And?", model=other(), key="again")
        await session.send("And?", model=other(), key="again")
        said = (await session.result()).text

    assert "From the other." == said
    assert ("MessageSent", True) == (receipt.message, receipt.recorded)
    assert ["StartAsked", "ModelChangeAsked", "MessageSent"] == await inbox_of(log)


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("antropic/claude", "'antropic' is unknown: did you mean 'anthropic'"),
        ("anthropic/claude-x", "ANTHROPIC_API_KEY: is not set"),
        ("", "'' names no model; write PROVIDER/NAME, or NAME"),
        ("gemini", "'gemini' is a provider; write gemini/NAME"),
        ("scripted/", "'scripted/' names no model"),
        ("scripted/a\nb", "names no model"),
        ("nowhere.toml", "cannot be read"),
    ],
)
async def test_a_model_that_cannot_be_used_changes_nothing(runtime, log, monkeypatch, model, said):
    monkeypatch.delenv("ANTHROPIC_API_KEY", raising=False)
    async with runtime() as here:
        session = await here.start(HELLO, "Go", id="one", open=True)

        with pytest.raises(ConfigError) as refused:
            await here.switch_model("one", model)
        with pytest.raises(ConfigError):
            await session.send("And?", model=model)

    assert said in str(refused.value)
    assert ["StartAsked"] == await inbox_of(log)


async def test_a_session_that_has_ended_takes_no_model(runtime):
    async with runtime() as here:
        session = await here.start(HELLO, "Go", id="one")
        await session.result()

        with pytest.raises(SessionFinishedError):
            await session.switch_model(other())


KEYED = {"ANTHROPIC_API_KEY": "k", "OTHER_KEY": "k"}


def chosen(model, **fields):
    agent = {"provider": "anthropic", "model": "claude-sonnet-4-5", **fields}
    spec = cueline.Agent(name="a", **agent).spec()
    return chosen_model(spec, model, (), KEYED)


@pytest.mark.parametrize("model", ["claude-haiku-4-5", "anthropic/claude-haiku-4-5"])
def test_the_same_provider_keeps_its_settings(model):
    mine = {"parameters": {"temperature": 0}, "key_variable": "OTHER_KEY"}

    expected = {"provider": "anthropic", "model": "claude-haiku-4-5", **mine}
    assert cueline.ModelChoice(**expected, context_window=200_000) == chosen(model, **mine)


def test_another_provider_begins_without_settings(tmp_path):
    script = tmp_path / "s.toml"
    script.write_text(OTHER)

    choice = chosen(f"scripted/{script}", parameters={"temperature": 0}, key_variable="OTHER_KEY")

    expected = cueline.ModelChoice(
        provider="scripted", model="s.toml", parameters={"script": OTHER}
    )
    assert expected == choice


def test_a_fallback_of_that_name_gives_its_settings():
    fallback = cueline.Fallback(**other().model_dump())

    assert other() == chosen("scripted/other", fallback=(fallback,))


def test_a_model_without_a_price_is_no_model_of_a_session_with_a_limit_of_cost():
    with pytest.raises(ConfigError, match="price"):
        chosen("anthropic/unheard-of", limits=cueline.Limits(max_cost=1))


async def test_a_script_keeps_its_tools(runtime):
    async with runtime() as here:
        session = await here.start(scripted('reply = [{ text = "a" }]'), "Go", id="one", open=True)
        await session.result()
        await session.switch_model(other())
        await session.send("And?")

        assert "From the other." == (await session.result()).text
