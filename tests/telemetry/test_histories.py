"""Spans of recorded sessions: crashes, approvals, forks, children, plans."""

import pytest
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult

from cueline.client.client import open_client
from cueline.telemetry import conventions
from cueline.telemetry.export import SpanExport
from tests.histories.logs import scenes, write_log

SCENES = {name: each for name, each in scenes().items() if name not in {"cut", "made"}}
"""Without the beginnings of all of them, and without facts that no session has in that order."""


class Kept(SpanExporter):
    """Keeps the spans as text."""

    def __init__(self):
        self.spans = []

    def export(self, spans):
        self.spans += spans
        return SpanExportResult.SUCCESS


async def spans_after(client, position):
    kept = Kept()
    export = SpanExport(client.log.journal(), kept, f"after-{position}", content=True)
    await export.begin(position)
    await export.catch_up()
    return kept.spans


@pytest.mark.parametrize("scene", SCENES)
async def test_an_export_that_begins_anywhere_makes_the_same_spans(scene, tmp_path):
    await write_log(tmp_path / "log.db", SCENES[scene])
    async with open_client(tmp_path / "log.db") as client:
        end = await client.log.store.last_position()
        spent = (await client.costs()).total
        whole = await spans_after(client, 0)
        texts = [each.to_json() for each in whole]
        for position in range(1, end, 7):
            (event,) = [e async for e in client.log.store.read_all(position - 1, limit=1)]
            left = [each for each in whole if each.end_time > event.recorded_us * 1000]
            later = [each.to_json() for each in await spans_after(client, position)]
            assert later == texts[len(texts) - len(later) :]
            assert len(later) >= len(left)

    assert whole
    ids = {each.context.span_id: each for each in whole}
    assert len(ids) == len(whole)
    for each in whole:
        assert each.start_time <= each.end_time
        if each.parent is not None and each.parent.span_id in ids:
            assert ids[each.parent.span_id].context.trace_id == each.context.trace_id
    sent = sum(each.attributes.get(conventions.INPUT_TOKENS, 0) for each in whole)
    assert spent.sent_tokens == sent
