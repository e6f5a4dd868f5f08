"""The Ed25519 key that signs the seals of a person's logs, beside the stored keys.

Importing this takes 50 ms.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Final

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)
from pydantic import SecretStr

from cueline.errors import ConfigError
from cueline.events.signed_note import (
    Checkpoint,
    SignedNote,
    key_id,
    read_verifier_key,
    verifier_key,
)
from cueline.files import make_folder
from cueline.providers.key_store import FOLDER, folder_of, read_private, write_private

_FILE: Final = "seal.key"
_ADVICE: Final = "`openssl genpkey -algorithm ed25519 -out FILE` makes a key"


class SealKey:
    """A private key that signs seals."""

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self._public = key.public_key().public_bytes_raw()

    def verifier_key(self, origin: str) -> str:
        """Return the public key for the seals of one log, as text."""
        return verifier_key(origin, self._public)

    def sign(self, checkpoint: Checkpoint) -> SignedNote:
        """Return *checkpoint* signed; the key has the name of the log."""
        name = checkpoint.origin
        signature = self._key.sign(checkpoint.text.encode())
        return SignedNote(checkpoint, name, key_id(name, self._public) + signature)


def seal_key(environ: Mapping[str, str], path: Path | None = None) -> SealKey:
    """Return the key in the file *path*, or the person's own, which is made at its first use.

    Raises:
        ConfigError: the file has no Ed25519 key in PEM, cannot be used, or others may read it.
    """
    place = path or _own(environ)
    text = read_private(place)
    if text is None and path is None:
        text = _make(place)
    if text is None:
        raise ConfigError(str(place), f"there is no such file; {_ADVICE}")
    try:
        key = load_pem_private_key(text.get_secret_value().encode(), password=None)
    except (ValueError, TypeError, UnsupportedAlgorithm):
        key = None
    if not isinstance(key, Ed25519PrivateKey):
        raise ConfigError(str(place), f"has no Ed25519 key in PEM; {_ADVICE}")
    return SealKey(key)


def is_signed_by(note: SignedNote, key: str) -> bool:
    """Whether the verifier key *key* has signed *note*."""
    try:
        name, public = read_verifier_key(key)
        begin = key_id(name, public)
        if name != note.name or not note.signature.startswith(begin):
            return False
        signed = note.checkpoint.text.encode()
        Ed25519PublicKey.from_public_bytes(public).verify(note.signature[len(begin) :], signed)
    except (InvalidSignature, ValueError):
        return False
    return True


def _own(environ: Mapping[str, str]) -> Path:
    folder = folder_of(environ)
    if folder is None:
        raise ConfigError(FOLDER, "is not set, and neither is HOME; name a folder for the keys")
    return folder / _FILE


def _make(path: Path) -> SecretStr:
    key = Ed25519PrivateKey.generate()
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    try:
        make_folder(path.parent)
        write_private(path, pem)
    except OSError as error:
        raise ConfigError(str(path), f"{error.strerror}; mend it") from error
    return SecretStr(pem.decode())
