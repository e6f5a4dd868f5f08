"""A log is read with other code before that code is deployed."""

import json
from contextlib import closing

import pytest
from msgspec.structs import replace

from cueline.actors.fold import keep
from cueline.client.log_check import SessionDifference, check_log
from cueline.deciders.session.state_codec import packed, unpacked
from cueline.errors import ConfigError, LogUnavailableError
from cueline.events.snapshot import SnapshotRow, sealed, unsealed
from cueline.runtime.open_log import open_log
from cueline.stores.backend import backend_of
from cueline.stores.postgres.address import address_of
from cueline.stores.postgres.connections import connected
from tests.damage import change
from tests.histories.logs import scenes, write_log

STORY = "session-default/story"
SCENES = scenes()
WHOLE = SCENES["whole"]
EVENTS = sum(len(WHOLE[name]) for name in (STORY, "inbox-default/story"))


@pytest.fixture(params=["file", "server"])
def url(request, tmp_path):
    """Return the URL of a log without events."""
    if request.param == "file":
        return str(tmp_path / "log.db")
    return str(request.getfixturevalue("one_server").empty_log("checked"))


def with_other(streams, number, stream=STORY, **fields):
    """Return *streams*, with other *fields* of one event."""
    events = [*streams[stream]]
    draft, blobs = events[number - 1]
    events[number - 1] = replace(draft, **fields), blobs
    return {**streams, stream: events}


def number_of(type_, stream=STORY):
    """Return the version of the last event of a type in the whole story."""
    return max(n for n, (draft, _) in enumerate(WHOLE[stream], start=1) if draft.type == type_)


async def rest(url, otherwise=lambda content: content):
    """Keep a snapshot of the story, changed by *otherwise*; return its version."""
    async with open_log(url) as log:
        log.snapshots.every = 0
        await keep(log.journal(), STORY)
        content = await log.snapshots.newest(STORY)
        row = SnapshotRow(unsealed(content).version, otherwise(content), b"", 0, [STORY])
        await log.snapshots.keep(STORY, row)
    return row.version


def told(**fields):
    """Return what seals a snapshot with other *fields*."""
    return lambda content: sealed(replace(unsealed(content), **fields))


def with_another_state(content):
    state, prompt = unpacked(unsealed(content).state)
    prompt.summarised += 1
    return told(state=packed(replace(state, inbox_read=state.inbox_read + 1), prompt))(content)


def damaged(content):
    return content[:-1] + bytes([content[-1] ^ 1])


async def test_a_log_of_today_is_read_without_a_difference(url):
    await write_log(url, WHOLE)
    await rest(url)

    found = await check_log(url)

    assert (1, 1, EVENTS) == (found.sessions, found.of, found.events)
    assert (1, 0, ()) == (found.compared, found.other_rules, found.differences)


@pytest.mark.parametrize("scene", [name for name in SCENES if name != "made"])
async def test_every_recorded_session_is_read_without_a_difference(scene, tmp_path):
    await write_log(tmp_path / "log.db", SCENES[scene])

    assert () == (await check_log(tmp_path / "log.db", sample=None)).differences


async def test_a_changed_payload_is_named(url):
    await write_log(url, WHOLE)
    changed = number_of("ModelReplied")
    longer = "UPDATE events SET payload = {} WHERE type = 'ModelReplied' AND version = {}"
    if url.startswith("postgresql"):
        with connected(address_of(backend_of(url).url)) as db:
            db.execute("SET session_replication_role = replica")
            db.execute(longer.format(r"payload || '\x20'::bytea", changed))
    else:
        change(url, longer.format("CAST(payload || ' ' AS BLOB)", changed))

    (found,) = (await check_log(url)).differences

    why = "the event is damaged: the payload is not the one that was appended"
    assert SessionDifference("story", changed, why) == found


async def test_a_payload_of_another_form_is_named(url):
    changed = number_of("ModelReplied")
    await write_log(url, with_other(WHOLE, changed, payload=b'{"effect":1}'))

    (found,) = (await check_log(url)).differences

    assert ("story", changed) == (found.session, found.version)
    assert found.reason.startswith("the event is damaged: effect: ")


async def test_an_unknown_type_is_named(url):
    await write_log(url, with_other(WHOLE, 7, type="Unheard", schema=3))

    (found,) = (await check_log(url)).differences

    why = "this cueline does not know the event Unheard, schema 3"
    assert SessionDifference("story", 7, why) == found


async def test_an_unknown_type_in_an_inbox_is_named(tmp_path):
    inbox = "inbox-default/story"
    await write_log(tmp_path / "log.db", with_other(WHOLE, 1, inbox, type="Unheard"))

    (found,) = (await check_log(tmp_path / "log.db")).differences

    why = f"in {inbox}: this cueline does not know the event Unheard, schema 1"
    assert SessionDifference("story", 1, why) == found


async def test_a_state_that_differs_is_named_with_what_differs(url):
    await write_log(url, WHOLE)
    version = await rest(url, with_another_state)

    found = await check_log(url)

    why = "the state is not that of its snapshot: inbox_read, prompt"
    assert (1, (SessionDifference("story", version, why),)) == (found.compared, found.differences)


async def test_a_damaged_snapshot_is_named_and_kept(url):
    await write_log(url, WHOLE)
    version = await rest(url, damaged)

    found = [await check_log(url) for _ in range(2)]

    named = SessionDifference("story", version, "the snapshot of its state is damaged")
    assert [(0, (named,))] * 2 == [(each.compared, each.differences) for each in found]


@pytest.mark.parametrize(
    "otherwise", [told(folds=(99, 1)), told(state=b"\x90")], ids=["another number", "other fields"]
)
async def test_a_state_that_other_rules_folded_is_counted_and_not_compared(otherwise, url):
    await write_log(url, WHOLE)
    await rest(url, otherwise)

    found = await check_log(url)

    assert (1, 0, ()) == (found.other_rules, found.compared, found.differences)


@pytest.mark.parametrize(
    "otherwise", [told(hash=bytes(32)), told(log_id="another")], ids=["hash", "log"]
)
async def test_a_snapshot_of_another_log_is_not_compared(otherwise, tmp_path):
    await write_log(tmp_path / "log.db", WHOLE)
    await rest(tmp_path / "log.db", otherwise)

    found = await check_log(tmp_path / "log.db")

    assert (0, 0, ()) == (found.other_rules, found.compared, found.differences)


# I10
async def test_another_prompt_is_named(tmp_path):
    asked = number_of("ModelRequested")
    fields = json.loads(WHOLE[STORY][asked - 1][0].payload) | {"digest": "0" * 64}
    other = with_other(WHOLE, asked, payload=json.dumps(fields).encode())
    await write_log(tmp_path / "log.db", other)

    (found,) = (await check_log(tmp_path / "log.db")).differences

    assert SessionDifference("story", asked, "the prompt is not the one that was sent") == found


async def test_an_event_that_the_rules_cannot_fold_is_named(tmp_path):
    await write_log(tmp_path / "log.db", SCENES["made"])

    found = (await check_log(tmp_path / "log.db")).differences

    why = "the rules cannot fold CallsAdded: AssertionError: only a plan adds calls"
    assert SessionDifference("7f3a", 8, why) in found


async def test_a_sample_is_spread_over_the_log_and_has_the_newest(tmp_path):
    unheard = [(replace(WHOLE[STORY][0][0], type="Unheard"), {})]
    for number in range(10):
        await write_log(tmp_path / "log.db", {f"session-default/s{number}": unheard})
    seen = []

    found = await check_log(tmp_path / "log.db", sample=3, progress=lambda *step: seen.append(step))

    assert ["s3", "s6", "s9"] == [each.session for each in found.differences]
    assert (3, 10, [(1, 3), (2, 3), (3, 3)]) == (found.sessions, found.of, seen)
    assert 10 == (await check_log(tmp_path / "log.db", sample=None)).sessions


async def test_the_log_is_not_changed(url):
    await write_log(url, WHOLE)
    await rest(url)
    before = rows_of(url)

    await check_log(url, sample=None)

    assert before == rows_of(url)


def rows_of(url):
    with closing(backend_of(url).open_rows()) as rows:
        tables = ("events", "streams", "appends", "blobs", "blob_refs")
        return {name: sorted(map(repr, rows.ask(f"SELECT * FROM {name}"))) for name in tables}


async def test_a_log_that_is_not_there_is_not_made(tmp_path):
    with pytest.raises(LogUnavailableError):
        await check_log(tmp_path / "log.db")
    with pytest.raises(ConfigError, match="0 is no number of sessions"):
        await check_log(tmp_path / "log.db", sample=0)

    assert [] == list(tmp_path.iterdir())
