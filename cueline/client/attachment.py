"""Reads the images and files that people send with a message."""

import base64
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from cueline.errors import ConfigError
from cueline.events.message import IMAGE_LIMIT, Attachment, FileBlock, ImageBlock, image_type
from cueline.files import refuse_endless

Attachable = str | os.PathLike[str] | bytes | ImageBlock | FileBlock
"""The path of a file, its bytes, or a block."""

_MB = 1024 * 1024
IMAGE_MB: Final = IMAGE_LIMIT // _MB
FILE_MB: Final = 20
"""The largest other file."""
TOGETHER_MB: Final = 30
"""The most for one message."""


def attachments_of(given: Sequence[Attachable]) -> tuple[Attachment, ...]:
    """Return the attachments of one message, read from their files.

    Raises:
        ConfigError: a file cannot be read, has another format, or is too large.
    """
    if isinstance(given, str | bytes | os.PathLike):
        raise ConfigError("attachments", f"it is {given!r:.80}; say it as in [{given!r:.80}]")
    found = tuple(map(_attachment_of, given))
    size = sum(len(each.data) * 3 // 4 for each in found)
    if size > TOGETHER_MB * _MB:
        why = f"they have {size / _MB:.0f} MB together; one message takes {TOGETHER_MB} MB"
        raise ConfigError("attachments", why)
    return found


def _attachment_of(given: Attachable) -> Attachment:
    match given:
        case ImageBlock() | FileBlock():
            return given
        case bytes():
            return attachment(given, "")
        case str() | os.PathLike():
            path = Path(given)
            return attachment(_read(path), path.name, str(path))
        case _:
            raise ConfigError("attachments", f"{given!r:.80} is no path, bytes, image or file")


def _read(path: Path) -> bytes:
    try:
        refuse_endless(path)
        with path.open("rb") as file:
            return file.read(FILE_MB * _MB + 1)
    except OSError as error:
        raise ConfigError(str(path), f"cannot be attached: {error.strerror}") from error


def attachment(content: bytes, name: str, where: str = "attachments") -> Attachment:
    """Return *content* as an image or file, by its first bytes.

    Raises:
        ConfigError: it is none that models take, or too large; the message begins with *where*.
    """
    image, most = image_type(content), FILE_MB
    if image:
        most = IMAGE_MB
    if len(content) > most * _MB:
        kind = "an image" if image else "a file"
        raise ConfigError(where, f"it has more than {most} MB, the most for {kind}")
    data = base64.b64encode(content).decode()
    if image:
        return ImageBlock(media_type=image, data=data, name=name)
    return FileBlock(media_type=_file_type(content, where), name=name, data=data)


def _file_type(content: bytes, where: str) -> str:
    if content.startswith(b"%PDF-"):
        return "application/pdf"
    if not content:
        raise ConfigError(where, "it is empty")
    try:
        text = content.decode()
    except UnicodeDecodeError:
        text = "\0"
    if "\0" in text:
        formats = "PNG, JPEG, GIF, WebP, PDF and UTF-8 text"
        raise ConfigError(where, f"its content is none of {formats}")
    return "text/plain"
