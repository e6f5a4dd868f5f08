"""Record the histories anew: `python -m tests.histories.record`.

`facts.jsonl` has one line for each fact made by hand in `facts.py`; beside it is one file for
each stream that the scenes leave. Since nothing is released, an event changes in place and the
histories are recorded again; from the first release on they are what it wrote, and stay.
"""

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path

from cueline.events.blob_ref import blobs_in
from cueline.events.codec import Codec
from cueline.events.stream import category_of, id_of
from tests.histories.facts import FACTS
from tests.histories.scenes import SCENES
from tests.histories.test_folds import FOLDS, broken, folds, pinned
from tests.histories.test_histories import RECORDED


def line(name: str, schema: int, payload: bytes, blobs: dict[str, bytes]) -> str:
    """Return one event as a line: what was in its columns, and its payload to the byte."""
    texts = {blob: content.decode() for blob, content in blobs.items()}
    row = {"type": name, "schema": schema, "payload": payload.decode(), "blobs": texts}
    return json.dumps(row, ensure_ascii=False) + "\n"


def by_hand() -> Iterator[str]:
    """Tell one line for each fact made by hand."""
    for fact in FACTS:
        encoded = Codec().encode(fact, actor="agent", occurred_us=0)
        draft = encoded.draft
        yield line(draft.type, draft.schema, draft.payload, dict(encoded.blobs))


async def of_scene(scene) -> dict[str, str]:
    """Return the lines of each stream that *scene* leaves."""
    place = await scene()
    texts: dict[str, str] = {}
    async for event in place.store.read_all():
        blobs = {blob: await place.store.get_blob(blob) for blob in blobs_in(event.payload)}
        text = line(event.type, event.schema, event.payload or b"", blobs)
        texts[event.stream] = texts.get(event.stream, "") + text
    return texts


def texts_of(folder: Path) -> dict[str, str]:
    """Return the content of each history in *folder*."""
    return {path.name: path.read_text(encoding="utf-8") for path in folder.glob("*.jsonl")}


def main() -> None:
    """Write all histories anew, and what the folds make of them.

    Where the histories stay the same, what a fold makes of them may change with its number only.
    """
    before = texts_of(RECORDED)
    shutil.rmtree(RECORDED, ignore_errors=True)
    RECORDED.mkdir()
    (RECORDED / "facts.jsonl").write_text("".join(by_hand()), encoding="utf-8")
    for scene in SCENES:
        for stream, text in asyncio.run(of_scene(scene)).items():
            name = f"{category_of(stream)}-{scene.__name__}-{id_of(stream)}.jsonl"
            (RECORDED / name).write_text(text, encoding="utf-8")
    if texts_of(RECORDED) == before and (why := broken(pinned(), folds())):
        raise SystemExit(why)
    FOLDS.write_text(json.dumps(folds(), indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
