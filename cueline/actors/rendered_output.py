"""Turns the output of a tool into what is recorded: sanitized (I11), and capped.

A longer output is kept as a blob.
"""

import asyncio
from collections.abc import Awaitable, Callable

from msgspec import Struct

from cueline.events.sanitize import CUT, Redactor, sanitize
from cueline.events.store import BLOB_LIMIT

CHARACTERS = 1024 * 1024
"""The most characters of an output in its event; a model's window may allow fewer."""
_HEAD, _TAIL = 800_000, 160_000
_LARGE = 1024 * 1024


class RenderedOutput(Struct, frozen=True):
    """An output in its recorded form."""

    text: str
    whole: str | None = None
    """The blob with the kept output, if *text* is capped."""
    size: int | None = None
    """The size of the whole output in bytes, if *text* is capped."""
    kept: int | None = None
    """The number of kept bytes, if not all could be kept."""
    cleaned: bool = False


async def render_output(
    content: bytes,
    truncated_from: int | None,
    redactor: Redactor,
    put_blob: Callable[[bytes], Awaitable[str]],
) -> RenderedOutput:
    """Sanitize *content*, and return it in its recorded form."""
    if len(content) > _LARGE:
        # Decoding 50 MB would block the other sessions.
        text, cleaned = await asyncio.to_thread(_decoded, content, redactor)
    else:
        text, cleaned = _decoded(content, redactor)
    if len(text) <= CHARACTERS and truncated_from is None:
        return RenderedOutput(text, cleaned=cleaned)
    cleaned_bytes = text.encode()
    kept = cleaned_bytes[:BLOB_LIMIT]
    whole = await put_blob(kept)
    size = truncated_from or len(content)
    cut = truncated_from is not None or len(kept) < len(cleaned_bytes)
    what = f"the first {len(kept):,} bytes" if cut else "the whole output"
    where = f"{what} of {size:,} bytes is kept{', cleaned,' if cleaned else ''} as blob {whole}"
    return RenderedOutput(_capped(text, where), whole, size, len(kept) if cut else None, cleaned)


def _decoded(content: bytes, redactor: Redactor) -> tuple[str, bool]:
    try:
        text, replaced = content.decode(), False
    except UnicodeDecodeError:
        text, replaced = content.decode(errors="replace"), True
    text, cleaned = sanitize_text(text, redactor)
    return text, cleaned or replaced


def sanitize_text(text: str, redactor: Redactor) -> tuple[str, bool]:
    """Return *text* fit to record, and whether more than cut marks was removed."""
    kept, _ = sanitize(text, redactor)
    return kept, kept != text.replace(CUT, "")


def _capped(text: str, where: str) -> str:
    if len(text) <= CHARACTERS:
        return f"{text}\n[… {where} …]"
    left_out = len(text) - _HEAD - _TAIL
    gap = f"[… {left_out:,} characters are left out here; {where} …]"
    return f"{text[:_HEAD]}\n{gap}\n{text[-_TAIL:]}"
