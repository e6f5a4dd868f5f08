"""Stores, lists and removes the keys of providers; a stored key is never shown."""

from dataclasses import dataclass
from datetime import datetime

from pydantic import SecretStr

from cueline.config.environment import HERE
from cueline.errors import ConfigError
from cueline.events.sanitize import SHORTEST_SECRET
from cueline.providers.account import is_sendable
from cueline.providers.key_store import KeyStore, MasterKey, StoredKey
from cueline.providers.registry import provider_named


@dataclass(frozen=True, slots=True)
class KeyRow:
    """A stored key, without the key."""

    provider: str
    user: str
    """The user whose sessions use the key; empty: all users without a key of their own."""
    version: int
    """1 for the first key of this provider and user, then one more for each further key."""
    set_at: datetime


@dataclass(frozen=True, slots=True)
class KeyReceipt:
    """The result of a change of a stored key."""

    provider: str
    user: str
    version: int
    path: str
    """The file of the stored keys."""
    master_key: str
    """The place of the master key: a variable, or a file."""


def set_key(provider: str, key: SecretStr, *, user: str = "", now: datetime) -> KeyReceipt:
    """Store the *key* of a provider, and replace an earlier key of the same user.

    Raises:
        ConfigError: the provider is unknown or has no key, *key* is invalid, or cannot be stored.
    """
    if provider_named(provider).endpoint is None:
        raise ConfigError(provider, "is not called over a network, and takes no key")
    if len(key.get_secret_value()) < SHORTEST_SECRET:
        short = f"it is shorter than {SHORTEST_SECRET} characters"
        raise ConfigError("the key", f"{short}, and could not be kept out of the log")
    if not is_sendable(key):
        raise ConfigError("the key", "it holds blanks or characters that no key has")
    store = KeyStore(HERE)
    row = store.set(provider, user, key, now.isoformat(timespec="seconds"))
    return KeyReceipt(provider, user, row.version, str(store.path), store.master_source)


def stored_keys() -> tuple[KeyRow, ...]:
    """Return the stored keys, by provider and user.

    Raises:
        ConfigError: the file of the stored keys cannot be used.
    """
    return tuple(map(_row, KeyStore(HERE).rows()))


def remove_key(provider: str, *, user: str = "") -> None:
    """Remove a stored key.

    Raises:
        ConfigError: there is no such key, or the file cannot be used.
    """
    if not KeyStore(HERE).remove(provider, user):
        whose = f" for {user}" if user else ""
        raise ConfigError(
            provider, f"no key is stored{whose}; `cueline keys list` shows those that are"
        )


def master_key() -> MasterKey:
    """Return the master key of this machine's stored keys; without stored keys, it is made.

    Raises:
        ConfigError: the file or variable with the key cannot be used.
    """
    return KeyStore(HERE).master_key()


def _row(stored: StoredKey) -> KeyRow:
    return KeyRow(
        stored.provider, stored.user, stored.version, datetime.fromisoformat(stored.set_at)
    )
