"""A session of a model with a small context window goes on, whatever its tools return."""

import pytest

import cueline
from cueline.client.runtime import open_runtime
from cueline.events.session import ContextCompacted, ModelFailed, ToolReturned
from cueline.providers import registry
from tests.runtime.small_window import BYTES_A_TOKEN, WINDOW

READ = '{ name = "read_file", arguments = { path = "long.txt" } }'
DONE = 'text = "Done."'
LINES = "".join(
    f"{number}: the quick brown fox jumps over the lazy dog\n" for number in range(9000)
)
TEXTS = {
    "prose": LINES,
    "one line": LINES.replace("\n", " "),
    "quotes": '"\\\t' * 100_000,
    "japanese": "日本語の文章です。\n" * 20_000,
    "digits": "".join(str(number * 7919) for number in range(40_000)),
}


@pytest.fixture
def small(tmp_path, monkeypatch):
    """Install the provider of small models, and return what makes an agent of one."""
    about = tmp_path / "site/small-1.dist-info"
    about.mkdir(parents=True)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: small\nVersion: 1\n")
    entry = "[cueline.providers]\nsmall = tests.runtime.small_window:PROVIDER\n"
    (about / "entry_points.txt").write_text(entry)
    monkeypatch.syspath_prepend(tmp_path / "site")
    registry._entries.cache_clear()
    registry.secret_variables.cache_clear()

    def agent(*turns):
        script = tmp_path / "script.toml"
        script.write_text("\n".join(["[[reply]]\n" + each for each in turns]))
        return cueline.Agent(
            name="reader",
            provider="small",
            model=str(script),
            tools=["read_file"],
            workspace=tmp_path / "work",
            context_window=WINDOW,
            limits={"max_output_tokens": 1_024},
        )

    (tmp_path / "work").mkdir()
    yield agent
    registry._entries.cache_clear()
    registry.secret_variables.cache_clear()


async def facts_of(agent, log):
    async with open_runtime(str(log), on="inline") as runtime:
        session = await runtime.start(agent, "Read it.")
        result = await session.result()
        return result, [each.event async for each in session.events()]


def reading(times=1):
    return f"calls = [{', '.join([READ] * times)}]"


@pytest.mark.parametrize("text", TEXTS)
async def test_one_file_ends_no_session_of_a_small_model(small, tmp_path, text):
    (tmp_path / "work" / "long.txt").write_text(TEXTS[text])

    result, facts = await facts_of(small(reading(), DONE), tmp_path / "log.db")

    assert "Done." == result.text
    assert [] == [each for each in facts if isinstance(each, ModelFailed)]
    (returned,) = [each for each in facts if isinstance(each, ToolReturned)]
    assert len(returned.output.encode()) > 2 * WINDOW * BYTES_A_TOKEN


async def test_file_after_file_ends_no_session_of_a_small_model(small, tmp_path):
    (tmp_path / "work" / "long.txt").write_text(TEXTS["prose"])

    result, facts = await facts_of(small(*[reading()] * 12, *[DONE] * 9), tmp_path / "log.db")

    assert "Done." == result.text
    assert [each for each in facts if isinstance(each, ContextCompacted)]
