"""The read models catch up with the log, and can be thrown away (I1)."""

import asyncio
import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cueline.errors import CorruptEventError
from cueline.events.codec import Codec
from cueline.events.store import NO_STREAM, Draft, RecordedEvent, Write
from cueline.projections import views as module
from cueline.projections.audit import audit
from cueline.projections.projector import Projector
from cueline.projections.read_model import Rows, create, new_row
from cueline.projections.session import list_sessions
from cueline.projections.views import MODELS, Views
from cueline.sqlite_library import sqlite_library
from cueline.stores.memory import MemoryStore
from tests.drawn import drawn
from tests.projections.conftest import find_session

HISTORY = Path(__file__).parents[1] / "histories/recorded/facts.jsonl"
MET = [json.loads(line) for line in HISTORY.read_text(encoding="utf-8").splitlines()]


async def test_an_empty_log_has_empty_read_models(log):
    assert (0, []) == (await log.views.catch_up(log.store), list_sessions(log.views.db))


async def test_the_checkpoint_is_the_last_position(busy):
    assert await busy.store.last_position() == await busy.views.catch_up(busy.store)
    assert await busy.store.last_position() == busy.views.checkpoint.position


async def test_a_deleted_file_is_filled_again_to_the_byte(busy):
    await busy.caught_up()
    before = busy.dump()
    busy.views.close()
    busy.path.unlink()

    busy.views = Views(busy.path)
    await busy.caught_up()

    assert before == busy.dump()


@pytest.mark.parametrize("size", [1, 2, 7])
async def test_it_makes_no_difference_where_batches_end(busy, size, monkeypatch):
    await busy.caught_up()
    before = busy.dump()

    monkeypatch.setattr(module, "BATCH", size)
    await busy.views.clear()
    await busy.caught_up()

    assert before == busy.dump()


async def test_events_are_projected_once_whoever_catches_up(busy, monkeypatch):
    monkeypatch.setattr(module, "BATCH", 2)
    other = Views(busy.path)

    await asyncio.gather(*(v.catch_up(busy.store) for v in (busy.views, other, busy.views)))

    assert list(range(1, await busy.store.last_position() + 1)) == [
        e.position for e in audit(other.db)
    ]
    assert 4 == find_session(other.db, "a").turns
    other.close()


async def test_who_is_overtaken_reads_on_from_there(busy, monkeypatch):
    async def overtaken(store, after=0, categories=None, limit=None):
        async for event in whole(store, after, categories, limit):
            yield event
        monkeypatch.undo()
        await other.catch_up(store)

    whole = MemoryStore.read_all
    other = Views(busy.path)
    monkeypatch.setattr(type(busy.store), "read_all", overtaken)

    await busy.caught_up()

    assert await busy.store.last_position() == len(audit(busy.views.db))
    other.close()


async def test_rows_and_checkpoint_move_together_or_not_at_all(busy, monkeypatch):
    def fails(projector):
        flush(projector)
        if len(audit(busy.views.db)) > 4:
            raise RuntimeError

    flush = Projector.flush
    monkeypatch.setattr(module, "BATCH", 4)
    monkeypatch.setattr(Projector, "flush", fails)

    with pytest.raises(RuntimeError):
        await busy.caught_up()

    assert (4, 4) == (busy.views.checkpoint.position, len(audit(busy.views.db)))


async def test_a_gap_in_the_log_is_a_bug(busy, monkeypatch):
    async def with_gap(store, after, categories=None, limit=None):
        async for event in whole(store, after, categories, limit):
            yield event._replace(position=event.position + 1)

    whole = MemoryStore.read_all
    monkeypatch.setattr(type(busy.store), "read_all", with_gap)

    with pytest.raises(AssertionError, match="1 is missing"):
        await busy.caught_up()


async def test_everything_before_a_damaged_event_is_projected(busy, monkeypatch):
    async def damaged(store, after=0, categories=None, limit=None):
        async for event in whole(store, after, categories, limit):
            if event.position == 6:
                raise CorruptEventError("?", 0, 6, "it is damaged")
            yield event

    whole = MemoryStore.read_all
    monkeypatch.setattr(type(busy.store), "read_all", damaged)

    with pytest.raises(CorruptEventError, match="position 6"):
        await busy.caught_up()

    assert 5 == busy.views.checkpoint.position


# C33
async def test_read_models_of_another_log_are_filled_anew(busy, facts, tmp_path):
    await busy.caught_up()
    other = type(busy)(Views(tmp_path / "unused"))
    for n in range(20):
        await other.append(f"session-default/c{n}", facts.STARTED)

    await busy.views.catch_up(other.store)

    assert {f"c{n}" for n in range(20)} == {s.id for s in list_sessions(busy.views.db)}
    other.views.close()


async def test_a_log_that_was_cut_off_is_projected_anew(busy, facts, tmp_path):
    await busy.caught_up()
    shorter = type(busy)(Views(tmp_path / "unused"))
    await shorter.append("session-default/a", facts.STARTED)

    assert 1 == await busy.views.catch_up(shorter.store)

    assert ["a"] == [s.id for s in list_sessions(busy.views.db)]
    shorter.views.close()


async def test_an_event_of_a_newer_cueline_leaves_its_facets(busy):
    newer = Draft(type="ToolJuggled", schema=1, payload=b"{}", occurred_us=1, actor="agent")
    await busy.store.append([Write("session-default/c", [newer], NO_STREAM)], "n")

    db = await busy.caught_up()

    assert ["ToolJuggled"] == [e.type for e in audit(db, session="session-default/c")]
    assert 3 == len(list_sessions(db))


async def test_an_emptied_event_leaves_its_facets(busy, monkeypatch):
    async def emptied(store, after=0, categories=None, limit=None):
        async for event in whole(store, after, categories, limit):
            yield event._replace(payload=None) if event.type == "ModelReplied" else event

    whole = MemoryStore.read_all
    monkeypatch.setattr(type(busy.store), "read_all", emptied)

    db = await busy.caught_up()

    assert (0, 0) == (find_session(db, "a").turns, find_session(db, "a").input_tokens)
    assert 4 == len(audit(db, type="ModelReplied"))


@settings(
    max_examples=drawn(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(order=st.permutations(MET), streams=st.data())
def test_every_order_of_facts_can_be_projected(log, order, streams):
    """What is recorded happened, also what no rule would let happen (I13)."""
    asyncio.run(log.views.clear())
    projector = Projector(log.views.db)
    names = st.sampled_from(
        ["session-x/a", "session-x/b", "inbox-x/a", "approval-x/a", "runner-x/r"]
    )

    for position, line in enumerate(order, start=1):
        event = RecordedEvent(
            streams.draw(names), position, position, line["type"], 1, line["payload"].encode(),
            0, 0, 1, "agent", None, None, None, 0, 0, b"", b"", b"",
        )  # fmt: skip
        blobs = {blob: text.encode() for blob, text in line["blobs"].items()}
        projector.project(event, Codec().decode(event, blobs))
    projector.flush()

    assert len(order) == len(audit(log.views.db))


@pytest.mark.parametrize("model", MODELS)
def test_every_table_is_strict(log, model):
    made = "SELECT sql FROM sqlite_schema WHERE name = ?"
    ((statement,),) = log.views.db.execute(made, [model.TABLE])

    assert statement.endswith("STRICT")


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.TABLE)
def test_a_new_row_can_be_stored_with_nothing_but_its_key(model):
    db = sqlite_library().connect(":memory:")
    create(db, model)
    rows = Rows(db, model)

    rows.add(new_row(model, **dict.fromkeys(model.KEY, 1)))
    rows.flush()

    assert (1,) == db.execute(f"SELECT count(*) FROM {model.TABLE}").fetchone()
