"""Record the history of a schema: `python tests/histories/record.py v1 [LOG]`.

Without a log it writes `facts.jsonl`: one line for each schema of a fact that
no earlier version recorded, made by hand in `facts.py`. With a log it writes one file
for each session in it, inbox and approvals beside it. Files are only ever
added: a recorded history is what a released cueline wrote. Until its release,
the newest one may be removed and recorded again.
"""

import asyncio
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from cueline.clock import SystemClock
from cueline.events.blob_ref import blobs_in
from cueline.events.codec import Codec
from cueline.events.stream import category_of, id_of
from cueline.stores.sqlite import SqliteStore
from tests.histories.facts import FACTS

HERE = Path(__file__).parent


def line(name: str, schema: int, payload: bytes, blobs: dict[str, bytes]) -> str:
    """Return one event as a line: what was in its columns, and its payload to the byte."""
    texts = {blob: content.decode() for blob, content in blobs.items()}
    row = {"type": name, "schema": schema, "payload": payload.decode(), "blobs": texts}
    return json.dumps(row, ensure_ascii=False) + "\n"


def by_hand(known: set[tuple[str, int]]) -> Iterator[str]:
    """Tell one line for each fact made by hand, but for the schemas that are recorded already."""
    codec = Codec()
    for fact in FACTS:
        encoded = codec.encode(fact, actor="agent", occurred_us=0)
        draft = encoded.draft
        if (draft.type, draft.schema) not in known:
            yield line(draft.type, draft.schema, draft.payload, dict(encoded.blobs))


async def of_log(log: Path, folder: Path) -> None:
    """Write each stream of *log* to its own file."""
    store = SqliteStore.open(log, SystemClock())
    texts: dict[str, str] = {}
    async for event in store.read_all():
        blobs = {blob: await store.get_blob(blob) for blob in blobs_in(event.payload)}
        if event.payload is not None:
            texts.setdefault(event.stream, "")
            texts[event.stream] += line(event.type, event.schema, event.payload, blobs)
    await store.close()
    for stream, text in texts.items():
        add(folder / f"{category_of(stream)}-{id_of(stream)}.jsonl", text)


def recorded() -> set[tuple[str, int]]:
    """Return every type and schema that a history has."""
    lines = [json.loads(row) for path in HERE.glob("v*/*.jsonl") for row in path.open()]
    return {(row["type"], row["schema"]) for row in lines}


def add(path: Path, text: str) -> None:
    """Write a file that is not there yet."""
    with path.open("x", encoding="utf-8") as file:
        file.write(text)


def main(version: str, log: str = "") -> None:
    """Add the history of *version*."""
    folder = HERE / version
    folder.mkdir(exist_ok=True)
    if log:
        asyncio.run(of_log(Path(log), folder))
    else:
        add(folder / "facts.jsonl", "".join(by_hand(recorded())))


if __name__ == "__main__":
    main(*sys.argv[1:])
