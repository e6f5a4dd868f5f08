"""Ray's export of events as a source of the deaths of nodes."""

import httpx2

from cueline.events.fleet import FLEET_STREAM
from tests.gateway.conftest import TOKEN, served

NODE = "aaaa00e9ed6496bf7d027d8a27ce12ebed27a565c6644fdea89b6e12"
BEGAN = {
    "eventId": "MS28JIBU3dsKlPN5L/d08oAwHIiJcb8bKebQPg==",
    "sourceType": "GCS",
    "eventType": "NODE_LIFECYCLE_EVENT",
    "timestamp": "2026-03-01T10:13:55.791191492Z",
    "severity": "INFO",
    "nodeLifecycleEvent": {
        "nodeId": "qqoA6e1klr99An2KJ84S6+0npWXGZE/eqJtuEg==",
        "stateTransitions": [
            {
                "timestamp": "2026-03-01T10:13:55.791191973Z",
                "resources": {"CPU": 1.0},
                "state": "ALIVE",
                "aliveSubState": "UNSPECIFIED",
            }
        ],
    },
    "message": "",
}
DIED = BEGAN | {
    "eventId": "Oj5zGWLx7eyvHFLIQWinxMGH7M6QuTxulc17bw==",
    "nodeLifecycleEvent": {
        "nodeId": "qqoA6e1klr99An2KJ84S6+0npWXGZE/eqJtuEg==",
        "stateTransitions": [
            {
                "state": "DEAD",
                "timestamp": "2026-03-01T10:14:18.799805512Z",
                "deathInfo": {
                    "reason": "UNEXPECTED_TERMINATION",
                    "reasonMessage": "health check failed due to missing too many heartbeats",
                },
                "resources": {},
                "aliveSubState": "UNSPECIFIED",
            }
        ],
    },
}
"""As Ray 2.60 sends them."""


async def test_the_death_of_a_node_is_recorded_once(log):
    async with served(log) as (runtime, http):
        first = await http.post("/v1/ray/events", json=[BEGAN, DIED, {"eventType": "OTHER"}])
        # Ray sends what was not answered again; a URL may have the token.
        async with httpx2.AsyncClient(base_url=http.base_url, auth=("ray", TOKEN)) as as_ray:
            again = await as_ray.post("/v1/ray/events", json=[DIED])
            refused = await as_ray.post("/v1/ray/events", json=[], auth=("ray", "cue_no-token"))
        facts = [fact async for _, fact in runtime.log.journal().read(FLEET_STREAM)]
        (row,) = await runtime.audit(type="NodeDied")

    assert [{"recorded": 1}] * 2 == [first.json(), again.json()]
    assert 401 == refused.status_code
    (died,) = facts
    assert (NODE, "unexpected_termination") == (died.node, died.reason)
    assert "system:ray" == row.actor


async def test_what_is_no_event_of_a_node_is_refused(log):
    async with served(log) as (runtime, http):
        for broken in ({}, {"nodeId": "?", "stateTransitions": [{"state": "DEAD"}]}, None):
            said = await http.post("/v1/ray/events", json=[DIED | {"nodeLifecycleEvent": broken}])
            assert 422 == said.status_code, said.text
        assert 0 == await runtime.log.store.last_position()
