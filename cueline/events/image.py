"""The images that models take, known by their first bytes."""

from typing import Final

IMAGE_LIMIT: Final = 5 * 1024 * 1024
"""The bytes of the largest image; vendors refuse larger ones."""
FORMATS: Final = "PNG, JPEG, GIF or WebP"
_STARTS: Final = {
    b"\x89PNG\r\n\x1a\n": "image/png",
    b"\xff\xd8\xff": "image/jpeg",
    b"GIF87a": "image/gif",
    b"GIF89a": "image/gif",
}
LONGEST_START: Final = 12
"""So many bytes tell the type."""


def image_type(content: bytes) -> str:
    """Return the media type of an image; empty if it is none that models take."""
    if content[:4] == b"RIFF" and content[8:LONGEST_START] == b"WEBP":
        return "image/webp"
    return next((kind for start, kind in _STARTS.items() if content.startswith(start)), "")
