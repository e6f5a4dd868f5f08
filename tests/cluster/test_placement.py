"""What Ray tells about the places of actors."""

from types import SimpleNamespace

import pytest

from cueline.cluster import placement


@pytest.mark.parametrize(
    ("recorded", "node"),
    [("f" + "0a" * 27 + "f", "f" + "0a" * 27 + "f"), ("ff" * 28, ""), ("", "")],
    ids=["an id with f at its ends", "none yet", "none at all"],
)
async def test_the_node_of_an_actor_is_whole_or_unknown(recorded, node, monkeypatch):
    state = SimpleNamespace(actor_table=lambda _: {"Address": {"NodeID": recorded}})
    monkeypatch.setattr(placement, "state", state)
    actor = SimpleNamespace(_actor_id=b"1")

    assert node == await placement.node_of_actor(actor)
