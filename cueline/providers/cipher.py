"""Encrypts stored keys: AES-256-GCM under a master key, in a text with a version."""

import os
from base64 import b64decode, b64encode, urlsafe_b64decode
from pathlib import Path
from typing import Final, NamedTuple

from pydantic import Secret, SecretStr

from cueline.errors import ConfigError

VARIABLE: Final = "CUELINE_ENCRYPTION_KEY"
"""The environment variable with the master key: 32 bytes in base64 or hex."""
_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_HEX: Final = 64
_VERSION: Final = "v2"


class KeyOwner(NamedTuple):
    """What a ciphertext is bound to: it decrypts for nothing else."""

    provider: str
    user: str
    version: int
    """Of the stored key, so that a former one cannot be put back in its place."""


class MasterKey:
    """The key that encrypts the stored keys."""

    __slots__ = ("_key", "source")

    def __init__(self, text: SecretStr, source: str) -> None:
        """Read the key in *text*.

        Raises:
            ConfigError: it is no key; correct the variable or file *source*.
        """
        found = _key_in(text)
        if found is None:
            fix = "it takes 32 bytes in base64 or hex; `openssl rand -base64 32` makes one"
            raise ConfigError(source, f"is no master key: {fix}")
        self._key = found
        self.source = source

    @property
    def forms(self) -> tuple[SecretStr, ...]:
        """The texts that give the key away: in base64, and in hex."""
        key = self._key.get_secret_value()
        return SecretStr(b64encode(key).decode()), SecretStr(key.hex())

    def encrypt(self, text: SecretStr, owner: KeyOwner) -> str:
        """Return *text* encrypted, so that it can be decrypted for the same *owner* only."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 50 ms

        cipher = AESGCM(self._key.get_secret_value())
        nonce = os.urandom(_NONCE_BYTES)
        sealed = cipher.encrypt(nonce, text.get_secret_value().encode(), _associated(owner))
        pieces = nonce, sealed[-_TAG_BYTES:], sealed[:-_TAG_BYTES]
        return ":".join([_VERSION, *(b64encode(part).decode() for part in pieces)])

    def decrypt(self, text: str, owner: KeyOwner) -> SecretStr:
        """Return what `encrypt` made *text* of.

        Raises:
            ConfigError: it was encrypted with another key or for another owner, or is damaged.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - 50 ms
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 50 ms

        cipher = AESGCM(self._key.get_secret_value())
        try:
            nonce, tag, sealed = map(b64decode, text.removeprefix(f"{_VERSION}:").split(":"))
            return SecretStr(cipher.decrypt(nonce, sealed + tag, _associated(owner)).decode())
        except (InvalidTag, ValueError):
            why = (
                f"does not decrypt the stored key of {owner.provider}: another master key or "
                "version encrypted it, or it is damaged; restore the master key, or run "
                f"`cueline keys set {owner.provider}`"
            )
            raise ConfigError(self.source, why) from None


def new_master_key(path: Path) -> MasterKey:
    """Write a new master key to the file *path*, which nobody else can read; return it.

    Raises:
        OSError: it cannot be written, or is there already.
    """
    text = SecretStr(b64encode(os.urandom(_BYTES)).decode())
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, f"{text.get_secret_value()}\n".encode())
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return MasterKey(text, str(path))


def _associated(owner: KeyOwner) -> bytes:
    return "\0".join(("cueline key", *map(str, owner))).encode()


def _key_in(text: SecretStr) -> Secret[bytes] | None:
    plain = text.get_secret_value().strip()
    try:
        found = bytes.fromhex(plain) if len(plain) == _HEX else urlsafe_b64decode(plain)
    except ValueError:
        return None
    return Secret(found) if len(found) == _BYTES else None
