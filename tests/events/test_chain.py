import pytest

from cueline.errors import CorruptEventError
from cueline.events.chain import Chain, hash_payload, link
from cueline.events.store import GENESIS, RecordedEvent

SESSION = "session-default/7f3a"
SALT = b"0123456789abcdef"


def chained(count, *, version=0, previous=GENESIS, **rest):
    events = []
    for number in range(version + 1, version + count + 1):
        payload = b"payload %d" % number
        event = RecordedEvent(
            stream=SESSION,
            version=number,
            position=number + 10,
            type="ToolStarted",
            schema=1,
            payload=payload,
            occurred_us=5,
            recorded_us=6,
            epoch=1,
            actor="agent",
            attrs=None,
            correlation_id="c",
            causation_id=None,
            step=0,
            seq=0,
            salt=SALT,
            payload_hash=hash_payload(SALT, payload),
            hash=b"",
        )._replace(**rest)
        previous = link_of(event, previous)
        events.append(event._replace(hash=previous))
    return events


def link_of(event, previous):
    return link(
        previous,
        event.payload_hash,
        event.stream,
        event.version,
        event.type,
        event.schema,
        event.occurred_us,
        event.recorded_us,
        event.epoch,
        event.actor,
        event.attrs,
        event.correlation_id,
        event.causation_id,
        event.step,
        event.seq,
    )


def check(events, chain=None):
    chain = chain or Chain()
    for event in events:
        chain.check(event)
    return chain


ALTERED = {
    "stream": "session-default/81bc",
    "type": "ToolReturned",
    "schema": 2,
    "payload": b"payload 9",
    "occurred_us": 4,
    "recorded_us": 7,
    "epoch": 2,
    "actor": "user",
    "attrs": "{}",
    "correlation_id": None,
    "causation_id": "",
    "step": 1,
    "seq": 1,
    "salt": b"another salt....",
    "payload_hash": bytes(32),
    "hash": bytes(32),
}


def test_a_chain_begins_at_the_first_version():
    events = chained(3)

    chain = check(events)

    assert (3, events[-1].hash) == (chain.version, chain.hash)


def test_a_chain_goes_on_from_a_known_hash():
    _, second, third = chained(3)

    chain = check([third], Chain(second.version, second.hash))

    assert (3, third.hash) == (chain.version, chain.hash)


@pytest.mark.parametrize("field", ALTERED)
def test_whatever_is_altered_breaks_the_chain_there(field):
    events = chained(3)
    events[1] = events[1]._replace(**{field: ALTERED[field]})

    with pytest.raises(CorruptEventError) as caught:
        check(events)

    assert (events[1].stream, 2, 12) == caught.value.args[:3]


def test_what_is_before_a_broken_link_stays_checked():
    events = chained(3)
    events[2] = events[2]._replace(actor="user")
    chain = Chain()

    with pytest.raises(CorruptEventError):
        check(events, chain)

    assert (2, events[1].hash) == (chain.version, chain.hash)


@pytest.mark.parametrize("left", [[1, 2], [0, 2], [1, 0, 2], [0, 0, 1]])
def test_a_missing_swapped_or_doubled_event_breaks_the_chain(left):
    events = chained(3)

    with pytest.raises(CorruptEventError):
        check([events[index] for index in left])


def test_a_redacted_payload_does_not_break_the_chain():
    events = [event._replace(payload=None, salt=None) for event in chained(3)]

    assert 3 == check(events).version


def test_a_payload_without_its_salt_is_corrupt():
    [event] = chained(1)

    with pytest.raises(CorruptEventError):
        check([event._replace(salt=None)])


def test_only_the_payloads_own_hash_may_stand_for_it():
    [event] = chained(1)

    with pytest.raises(CorruptEventError):
        check([event._replace(payload=None, salt=None, payload_hash=bytes(32))])


def test_the_position_is_no_part_of_the_chain():
    events = [event._replace(position=event.position + 5) for event in chained(3)]

    assert 3 == check(events).version


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ({"actor": "a", "type": "bc"}, {"actor": "ab", "type": "c"}),
        ({"attrs": None}, {"attrs": ""}),
        ({"attrs": "1:x", "correlation_id": None}, {"attrs": None, "correlation_id": "1:x"}),
        ({"attrs": None, "causation_id": "x"}, {"attrs": "x", "causation_id": None}),
        ({"attrs": "-", "correlation_id": None}, {"attrs": None, "correlation_id": "-"}),
        ({"attrs": "a1:b", "correlation_id": "c"}, {"attrs": "a", "correlation_id": "b1:c"}),
        ({"step": 1, "seq": 11}, {"step": 11, "seq": 1}),
        ({"correlation_id": "\u2028 1"}, {"correlation_id": "\u2028 11"}),
    ],
)
def test_two_events_that_differ_have_two_hashes(one, other):
    [first], [second] = chained(1, **one), chained(1, **other)

    assert first.hash != second.hash


def test_a_known_event_keeps_its_hash_for_ever():
    [event] = chained(1, attrs='{"tool":"x"}', causation_id="größer")

    assert "8223ff44f41ded2665884bf2f203fe848c5c46bd6af53e5177c2aae206e7d5a0" == event.hash.hex()
