from bench import conversation, session, waiting


async def test_the_bench_holds_a_conversation(tmp_path):
    assert await conversation.play(tmp_path / "log.db", turns=1) > 0


async def test_the_bench_holds_several_at_once(tmp_path):
    assert await session.play(tmp_path / "log.db", sessions=2, turns=1) > 0


async def test_the_bench_records_a_conversation_that_can_be_loaded(tmp_path):
    async with conversation.open_log(tmp_path / "log.db") as log:
        await conversation.record(log, turns=1)

        assert 3 == len((await conversation.loaded(log, "owner")).prompt.messages)


async def test_the_bench_has_sessions_wait_and_wakes_them(tmp_path, monkeypatch):
    # I12, I14
    monkeypatch.chdir(tmp_path)

    before, after, seconds = await waiting.weighed(sessions=4, woken=2, warm=2)

    assert after.tasks <= before.tasks
    assert after.files <= before.files
    assert 2 == len(seconds)
