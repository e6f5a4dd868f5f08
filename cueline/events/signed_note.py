"""The text of a seal: a checkpoint in the form of a signed note (<https://c2sp.org/signed-note>)."""

import re
from base64 import b64decode, b64encode
from hashlib import sha256
from typing import Final, NamedTuple

_NOTE: Final = re.compile(
    r"(?P<text>(?P<origin>[^\s+]+)\n(?P<size>0|[1-9]\d*)\n(?P<root>[A-Za-z0-9+/]{43}=)\n)"
    r"\n— (?P<name>\S+) (?P<signature>[A-Za-z0-9+/]{91}=)\n"
)
_ED25519: Final = b"\x01"
"""The type of an Ed25519 signature."""
_ID_BYTES: Final = 4


class Checkpoint(NamedTuple):
    """The statement of a log about its first events."""

    origin: str
    """The log."""
    size: int
    root: bytes

    @property
    def text(self) -> str:
        """The text that is signed."""
        return f"{self.origin}\n{self.size}\n{b64encode(self.root).decode()}\n"


class SignedNote(NamedTuple):
    """A checkpoint with its signature."""

    checkpoint: Checkpoint
    name: str
    """The name of the key."""
    signature: bytes
    """The id of the key, and the signature."""

    @property
    def note(self) -> str:
        """The whole note."""
        return f"{self.checkpoint.text}\n— {self.name} {b64encode(self.signature).decode()}\n"


def read_note(note: str) -> SignedNote:
    """Return the parts of *note*.

    Raises:
        ValueError: it is no checkpoint with one signature.
    """
    found = _NOTE.fullmatch(note)
    if found is None:
        raise ValueError("it is no signed checkpoint")
    checkpoint = Checkpoint(found["origin"], int(found["size"]), b64decode(found["root"]))
    return SignedNote(checkpoint, found["name"], b64decode(found["signature"]))


def key_id(name: str, key: bytes) -> bytes:
    """Return the id of an Ed25519 key, which begins its signatures."""
    return sha256(name.encode() + b"\n" + _ED25519 + key).digest()[:_ID_BYTES]


def verifier_key(name: str, key: bytes) -> str:
    """Return the public key as text: `NAME+ID+KEY`."""
    return f"{name}+{key_id(name, key).hex()}+{b64encode(_ED25519 + key).decode()}"


def read_verifier_key(text: str) -> tuple[str, bytes]:
    """Return the name and the public key in *text*.

    Raises:
        ValueError: *text* is no verifier key of an Ed25519 key.
    """
    name, _, rest = text.partition("+")
    key = b64decode(rest.partition("+")[2].encode())[1:]
    if text != verifier_key(name, key):
        raise ValueError("it is no verifier key")
    return name, key
