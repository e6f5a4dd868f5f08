"""Seals, proofs and their check on every kind of log."""

from base64 import b64decode

import pytest

from cueline import open_runtime
from cueline.client.seal import prove
from cueline.client.verify import verify_log
from cueline.errors import RejectedError
from cueline.events.chain import link
from cueline.events.merkle import leaf_hash, root_of_path
from cueline.providers.seal_key import seal_key
from cueline.runtime.open_log import open_log
from cueline.runtime.seal import seal_log
from cueline.stores.backend import backend_of
from cueline.stores.postgres.address import address_of
from cueline.stores.postgres.connections import connected
from tests.damage import change
from tests.scripted import HELLO

LAST = """
UPDATE events SET actor = 'user:mallory', hash = {hash} WHERE position = {position}
"""
HEAD = "UPDATE streams SET head_hash = {hash} WHERE name = '{stream}'"


@pytest.fixture(params=["sqlite", "postgres"])
def url(request, tmp_path):
    if request.param == "sqlite":
        return str(tmp_path / "log.db")
    return str(request.getfixturevalue("one_server").empty_log("sealed"))


@pytest.fixture
def key(tmp_path):
    return seal_key({"XDG_CONFIG_HOME": str(tmp_path)})


def rewrite(url, event, previous):
    """Change the last event of a stream, and compute its hash and the stream's head again."""
    fields = event._replace(actor="user:mallory")
    hash_ = link(previous, event.payload_hash, fields[0], fields[1], *fields[3:5], *fields[6:15])
    text = f"'\\x{hash_.hex()}'" if url.startswith("postgresql") else f"x'{hash_.hex()}'"
    told = [
        LAST.format(hash=text, position=event.position),
        HEAD.format(hash=text, stream=event.stream),
    ]
    if url.startswith("postgresql"):
        with connected(address_of(backend_of(url).url)) as db:
            db.execute("SET session_replication_role = replica")
            for each in told:
                db.execute(each)
    else:
        for each in told:
            change(url, each)


async def sessions(url, *names):
    async with open_runtime(url, on="inline") as runtime:
        for name in names:
            await (await runtime.start(HELLO, "Go", id=name)).result()


async def test_each_sealed_event_is_proved(url, key, tmp_path):
    await sessions(url, "one", "two")
    async with open_log(url) as log:
        made = await seal_log(log, key, tmp_path / "seals")

        proofs = [await prove(log, position) for position in range(1, made.size + 1)]
        with pytest.raises(RejectedError, match="`cueline audit seal` seals what is new"):
            await prove(log, made.size + 1)
        checked = await verify_log(log, tmp_path / "seals", made.key)

    root = b64decode(made.note.splitlines()[2])
    for proof in proofs:
        leaf = leaf_hash(proof.leaf.encode())
        assert root == root_of_path(
            leaf, proof.index, made.size, [bytes.fromhex(each) for each in proof.path]
        )
    assert ((), 1, made.size) == (checked.bad, checked.seals, checked.sealed)


async def test_a_recomputed_chain_is_named(url, key, tmp_path):
    await sessions(url, "one")
    async with open_log(url) as log:
        await seal_log(log, key, tmp_path / "seals")
        events = [event async for event in log.store.read("session-default/one")]
    rewrite(url, events[-1], events[-2].hash)

    async with open_log(url) as log:
        checked = await verify_log(log, tmp_path / "seals")

    assert {"seal-default/main", "?"} == {row.stream for row in checked.bad}
    assert all("some were changed or removed" in row.reason for row in checked.bad)


async def test_the_first_bad_position_and_its_session_are_named(url):
    await sessions(url, "one", "two")
    async with open_log(url) as log:
        events = [event async for event in log.store.read("session-default/two")]
    rewrite(url, events[-1], b"another hash")

    async with open_log(url) as log:
        first = (await verify_log(log)).first

    assert (events[-1].position, "two") == (first.position, first.session)
