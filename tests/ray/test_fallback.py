from cueline.events.agent import Fallback
from cueline.events.agent_parts import RetryPolicy
from cueline.events.session import PromptPrefixChanged

SCRIPT = """
[[reply]]
text = "I stand in."
calls = [{ name = "repeatable" }]

[[reply]]
text = "Done."
"""


async def test_another_provider_stands_in_and_stays_though_the_host_dies(on_cluster, llmock):
    # 004-057, C4: the vendor's own fake is overloaded; nobody asks it again in this turn.
    llmock.fail(529, times=None, retry_after=0)
    async with on_cluster(SCRIPT, sessions=0) as world:
        script = world.agent(SCRIPT).model
        await world.ask(
            SCRIPT,
            1,
            tools=["repeatable"],
            provider="anthropic",
            model="claude-opus-4-6",
            base_url=llmock.base_url("anthropic"),
            key_variable="RAY_TESTS_KEY",
            retry=RetryPolicy(max_retries=1, base_seconds=0.05),
            fallback=(Fallback(provider="scripted", model=script),),
        )
        await world.place.place(world.streams)
        await world.kill_in_a_call("host")

        assert "Done." == await world.result()
        assert 2 == len(llmock.requests)
        assert "scripted" in (await world.fact(PromptPrefixChanged)).after
        types = await world.types()
        assert (2, 2, 1) == (types["ModelFailed"], types["ModelReplied"], types["SessionTakenOver"])
