from pathlib import Path

from cueline.testing.wait import await_until

ONE_CALL = """
[[reply]]
text = "I act."
calls = [{{ name = "{tool}" }}]

[[reply]]
text = "Done."
"""


# 000-071
async def test_a_session_survives_the_host_that_drives_it(on_cluster):
    async with on_cluster(ONE_CALL.format(tool="undeclared"), tools=["undeclared"]) as world:
        await world.kill_in_a_call("host")
        result = await world.result()
        types = await world.types()

        assert "Done." == result
        assert (1, 1, 1) == (
            types["SessionTakenOver"],
            types["ToolReturned"],
            len(world.journal_lines()),
        )


async def test_an_idempotent_call_runs_again_under_its_key_when_its_runner_dies(on_cluster):
    async with on_cluster(ONE_CALL.format(tool="repeatable"), tools=["repeatable"]) as world:
        await world.kill_in_a_call("runner")
        result = await world.result()
        keys, attempts, _ = zip(*world.journal_lines(), strict=True)

        assert "Done." == result
        assert (1, ("1", "2")) == (len(set(keys)), attempts)


async def test_the_model_is_told_when_the_outcome_of_a_call_is_unknown(on_cluster):
    script = ONE_CALL.format(tool="undeclared")
    async with on_cluster(script, tools=["undeclared"], policy={"in_doubt": "tell"}) as world:
        await world.kill_in_a_call("runner")
        result = await world.result()
        types = await world.types()

        assert "Done." == result
        assert (1, 1) == (types["ToolInDoubt"], len(world.journal_lines()))


async def test_a_person_is_asked_when_the_outcome_of_a_call_is_unknown(on_cluster):
    async with on_cluster(ONE_CALL.format(tool="undeclared"), tools=["undeclared"]) as world:
        await world.begun()
        await world.kill("runner")
        async for _, fact in world.session.events():
            if fact.type == "ApprovalRequested":
                await world.session.approve(fact, resolution="happened")
                break
        result = await world.result()

        assert "Done." == result
        assert 1 == len(world.journal_lines())


async def test_no_process_of_a_tool_outlives_its_runner(on_cluster):
    async with on_cluster(ONE_CALL.format(tool="spawning"), tools=["spawning"]) as world:
        await world.begun()
        child = (world.workspace / "child").read_text()
        [(_, _, worker)] = world.journal_lines()
        await world.kill("runner")

        await await_until(lambda: not lives(child) and not lives(worker))


async def test_many_sessions_survive_their_host_and_none_does_anything_twice(on_cluster):
    script = ONE_CALL.format(tool="undeclared")
    async with on_cluster(script, sessions=20, tools=["undeclared"]) as world:
        await world.kill_in_a_call("host")
        for stream in world.streams:
            await world.result(stream)
        keys = [key for key, _, _ in world.journal_lines()]

        assert sorted(f"{stream}/1.0" for stream in world.streams) == sorted(keys)


def lives(pid):
    return Path(f"/proc/{pid}").exists()
