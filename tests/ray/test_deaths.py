import asyncio

ONE_CALL = """
[[reply]]
text = "I act."
calls = [{{ name = "{tool}" }}]

[[reply]]
text = "Done."
"""


async def result_of(world):
    """Wait for the end, whatever it waits for until then."""
    async with asyncio.timeout(30):
        async for _, fact, _ in world.session.follow():
            if fact.type == "SessionCompleted":
                return fact.result


async def test_a_session_survives_the_host_that_drives_it(on_cluster):
    async with on_cluster(ONE_CALL.format(tool="undeclared"), tools=["undeclared"]) as world:
        await world.begun()
        world.kill("host")
        world.let_go()
        result = await result_of(world)
        types = await world.types()

        assert "Done." == result
        assert (1, 1, 1) == (
            types["SessionTakenOver"],
            types["ToolReturned"],
            len(world.journal_lines()),
        )


async def test_an_idempotent_call_runs_again_under_its_key_when_its_runner_dies(on_cluster):
    async with on_cluster(ONE_CALL.format(tool="repeatable"), tools=["repeatable"]) as world:
        await world.begun()
        world.kill("runner")
        world.let_go()
        result = await result_of(world)
        keys, attempts, _ = zip(*world.journal_lines(), strict=True)

        assert "Done." == result
        assert (1, ("1", "2")) == (len(set(keys)), attempts)


async def test_the_model_is_told_when_the_outcome_of_a_call_is_unknown(on_cluster):
    script = ONE_CALL.format(tool="undeclared")
    async with on_cluster(script, tools=["undeclared"], policy={"in_doubt": "tell"}) as world:
        await world.begun()
        world.kill("runner")
        world.let_go()
        result = await result_of(world)
        types = await world.types()

        assert "Done." == result
        assert (1, 1) == (types["ToolInDoubt"], len(world.journal_lines()))


async def test_a_person_is_asked_when_the_outcome_of_a_call_is_unknown(on_cluster):
    async with on_cluster(ONE_CALL.format(tool="undeclared"), tools=["undeclared"]) as world:
        await world.begun()
        world.kill("runner")
        async for fact in world.session.events():
            if fact.type == "ApprovalRequested":
                await world.session.approve(fact)
                break
        result = await result_of(world)

        assert "Done." == result
        assert 1 == len(world.journal_lines())
