"""The keys of providers that users have stored on this machine, encrypted (002-024).

They are in one file, in the folder that `folder_of` names. Nothing shows a stored key again.
The master key also seals texts that go through other hands and come back, such as proposals.
A file, folder or master key that cannot be used raises `ConfigError`; the message says what
to do.
"""

import fcntl
import json
import os
import re
import stat
import tempfile
from base64 import b64decode, b64encode, urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import lru_cache
from pathlib import Path
from typing import Any, Final, NamedTuple

from pydantic import Secret, SecretStr

from cueline.errors import ConfigError
from cueline.files import make_folder, personal_folder

VARIABLE: Final = "CUELINE_ENCRYPTION_KEY"
"""The environment variable with the master key: 32 bytes in base64 or hex."""
_BYTES: Final = 32
_NONCE_BYTES: Final = 12
_TAG_BYTES: Final = 16
_HEX: Final = 64
_VERSION: Final = "v2"
LOGIN: Final = "mcp:"
"""Begins the provider of a row with a login to an MCP server; its address follows."""
_TOKEN: Final = re.compile(r'"(?:access_token|refresh_token|client_secret)":"([^"]+)"')


class KeyOwner(NamedTuple):
    """The owner to which a ciphertext is bound: provider, user and version."""

    provider: str
    user: str
    version: int
    """The version of the stored key, so that a former key cannot be put back in its place."""


class MasterKey:
    """The master key, which encrypts the stored keys."""

    __slots__ = ("_key", "source")

    def __init__(self, text: SecretStr, source: str) -> None:
        """Read the key in *text*.

        Raises:
            ConfigError: *text* is no key; correct the variable or file *source*.
        """
        found = _key_in(text)
        if found is None:
            fix = "it takes 32 bytes in base64 or hex; `openssl rand -base64 32` makes one"
            raise ConfigError(source, f"is no master key: {fix}")
        self._key = found
        self.source = source

    @property
    def forms(self) -> tuple[SecretStr, ...]:
        """The texts that reveal the key: in base64, and in hex."""
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
        """Return the plain text of *text*, a result of `encrypt`.

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
            is_login = owner.provider.startswith(LOGIN)
            again = "tools --login NAME" if is_login else f"keys set {owner.provider}"
            why = (
                f"does not decrypt the stored key of {owner.provider}: another master key or "
                "version encrypted it, or it is damaged; restore the master key, or run "
                f"`cueline {again}`"
            )
            raise ConfigError(self.source, why) from None

    def seal(self, content: bytes, purpose: str) -> str:
        """Return *content* encrypted as letters, digits, `-` and `_`; see `unseal`."""
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 50 ms

        nonce = os.urandom(_NONCE_BYTES)
        cipher = AESGCM(self._key.get_secret_value())
        sealed = cipher.encrypt(nonce, content, _sealed_for(purpose))
        return urlsafe_b64encode(nonce + sealed).decode().rstrip("=")

    def unseal(self, text: str, purpose: str) -> bytes:
        """Return the content of *text*, a result of `seal` with the same *purpose*.

        Raises:
            ValueError: another key or purpose sealed it, or somebody has changed it.
        """
        from cryptography.exceptions import InvalidTag  # noqa: PLC0415 - 50 ms
        from cryptography.hazmat.primitives.ciphers.aead import AESGCM  # noqa: PLC0415 - 50 ms

        cipher = AESGCM(self._key.get_secret_value())
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            nonce, rest = sealed[:_NONCE_BYTES], sealed[_NONCE_BYTES:]
            return cipher.decrypt(nonce, rest, _sealed_for(purpose))
        except (InvalidTag, ValueError):
            raise ValueError("not sealed with this key for this purpose") from None


def new_master_key(path: Path) -> MasterKey:
    """Write a new master key to the file *path*, which nobody else can read; return it.

    Raises:
        OSError: the file cannot be written, or exists already.
    """
    text = SecretStr(b64encode(os.urandom(_BYTES)).decode())
    write_private(path, f"{text.get_secret_value()}\n".encode())
    return MasterKey(text, str(path))


def write_private(path: Path, content: bytes) -> None:
    """Write the new file *path*, which nobody else can read.

    Raises:
        OSError: the file cannot be written, or exists already.
    """
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        os.write(descriptor, content)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _associated(owner: KeyOwner) -> bytes:
    return "\0".join(("cueline key", *map(str, owner))).encode()


def _sealed_for(purpose: str) -> bytes:
    return f"cueline seal\0{purpose}".encode()


def _key_in(text: SecretStr) -> Secret[bytes] | None:
    plain = text.get_secret_value().strip()
    try:
        found = bytes.fromhex(plain) if len(plain) == _HEX else urlsafe_b64decode(plain)
    except ValueError:
        return None
    return Secret(found) if len(found) == _BYTES else None


FOLDER: Final = "CUELINE_KEYS_FOLDER"
"""The environment variable with another folder."""
_FILE: Final = "keys.json"
_MASTER: Final = "master.key"
_FORMAT: Final = 1


class StoredKey(NamedTuple):
    """A stored key, encrypted."""

    provider: str
    user: str
    """The user whose sessions use the key; empty for all users without a separate key."""
    version: int
    """1 for the first key of this provider and user, then one more for each further key."""
    set_at: str
    """When the key was stored: ISO 8601, in UTC."""
    key: str
    """The ciphertext."""


def folder_of(environ: Mapping[str, str]) -> Path | None:
    """Return the folder of the stored keys; None if the environment names no folder."""
    named = environ.get(FOLDER)
    return Path(named) if named else personal_folder(environ)


class KeyStore:
    """The stored keys, read from the current file."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._folder = folder_of(environ)

    @property
    def path(self) -> Path:
        """The path of the file with the stored keys."""
        if self._folder is None:
            raise ConfigError(FOLDER, "is not set, and neither is HOME; name a folder for the keys")
        return self._folder / _FILE

    def rows(self) -> tuple[StoredKey, ...]:
        """Return all stored keys, by provider and user."""
        return () if self._folder is None else _rows(self._folder / _FILE)

    def owner(self, provider: str, user: str) -> StoredKey | None:
        """Return the stored key for sessions of *user*: the user's own, or that of all users."""
        found = {each.user: each for each in self.rows() if each.provider == provider}
        return found.get(user) or found.get("")

    def key(self, provider: str, user: str) -> SecretStr | None:
        """Return the key for the sessions of *user*; None if no key is stored."""
        row = self.owner(provider, user)
        return None if row is None else _decrypted(row, self._master())

    def secrets(self) -> list[SecretStr]:
        """Return every stored key and the master key, as far as this process can read them."""
        if self._folder is None or not (
            self._environ.get(VARIABLE) or os.path.exists(self._folder / _MASTER)  # noqa: PTH110 - each journal asks
        ):
            return []
        try:
            rows, master = self.rows(), self._master()
        except ConfigError:
            return []
        found = list(master.forms)
        for row in rows:
            with suppress(ConfigError):
                plain = _decrypted(row, master)
                # A login to an MCP server is a document; the secrets are its tokens.
                tokens = map(SecretStr, _TOKEN.findall(plain.get_secret_value()))
                found += tokens if row.provider.startswith(LOGIN) else [plain]
        return found

    def set(self, provider: str, user: str, key: SecretStr, now: str) -> StoredKey:
        """Store *key*, replace a former one, and return the stored entry."""
        with self._changing() as rows:
            former = rows.get((provider, user))
            master = self._master(make=True)
            owner = KeyOwner(provider, user, 1 if former is None else former.version + 1)
            row = StoredKey(*owner, now, master.encrypt(key, owner))
            rows[provider, user] = row
        return row

    def remove(self, provider: str, user: str) -> bool:
        """Remove a key; return whether it was stored."""
        if not any((each.provider, each.user) == (provider, user) for each in self.rows()):
            return False
        with self._changing() as rows:
            return rows.pop((provider, user), None) is not None

    def master_key(self) -> MasterKey:
        """Return the master key; without stored keys, a missing one is made."""
        with suppress(ConfigError):
            return self._master()
        with self._locked():
            return self._master(make=True)

    @property
    def master_source(self) -> str:
        """The place of the master key: the variable, or the path of the file."""
        return VARIABLE if self._environ.get(VARIABLE) else str(self.path.with_name(_MASTER))

    def _master(self, *, make: bool = False) -> MasterKey:
        if self._environ.get(VARIABLE):
            return MasterKey(SecretStr(self._environ[VARIABLE]), VARIABLE)
        path = self.path.with_name(_MASTER)
        if (text := read_private(path)) is not None:
            return MasterKey(text, str(path))
        if make and not self.rows():
            return new_master_key(path)
        why = f"there is no such file, and {VARIABLE} is not set"
        fix = f"restore the master key, or remove {self.path} and store the keys again"
        raise ConfigError(str(path), f"{why}, so the stored keys cannot be decrypted; {fix}")

    @contextmanager
    def _changing(self) -> Iterator[dict[tuple[str, str], StoredKey]]:
        """Yield the rows for a change, and write them; no other process writes meanwhile."""
        with self._locked() as folder:
            rows = {(each.provider, each.user): each for each in _rows(self.path)}
            yield rows
            _replace(self.path, [rows[owner] for owner in sorted(rows)])
            os.fsync(folder)

    @contextmanager
    def _locked(self) -> Iterator[int]:
        """Yield a descriptor of the folder, in which no other process writes meanwhile."""
        path = self.path
        try:
            make_folder(path.parent)
            folder = os.open(path.parent, os.O_RDONLY)
            try:
                fcntl.flock(folder, fcntl.LOCK_EX)
                yield folder
            finally:
                os.close(folder)
        except OSError as error:
            raise ConfigError(str(error.filename or path), f"{error.strerror}; mend it") from error


def _rows(path: Path) -> tuple[StoredKey, ...]:
    try:
        found = path.stat()
    except OSError:
        return ()
    return _parsed(path, (found.st_ino, found.st_mtime_ns, found.st_size, found.st_mode))


@lru_cache(maxsize=8)
def _parsed(path: Path, _as_it_is: tuple[int, ...]) -> tuple[StoredKey, ...]:
    text = read_private(path)
    try:
        table: dict[str, Any] = json.loads(text.get_secret_value() if text else "")
        if table["format"] != _FORMAT:
            raise ConfigError(str(path), f"has the format {table['format']!r}; upgrade cueline")
        return tuple(StoredKey(**each) for each in table["keys"])
    except (ValueError, TypeError, KeyError) as error:
        why = "is no file of keys; move it away, and store the keys again with `cueline keys set`"
        raise ConfigError(str(path), why) from error


@lru_cache(maxsize=256)
def _plain(text: str, owner: KeyOwner, master: SecretStr, source: str) -> SecretStr:
    return MasterKey(master, source).decrypt(text, owner)


def _decrypted(row: StoredKey, master: MasterKey) -> SecretStr:
    owner = KeyOwner(row.provider, row.user, row.version)
    return _plain(row.key, owner, master.forms[0], master.source)


def read_private(path: Path) -> SecretStr | None:
    """Return the text of a file that nobody else may read; None if the file does not exist.

    Raises:
        ConfigError: others may read the file, or it cannot be read.
    """
    try:
        with path.open(encoding="utf-8") as file:
            if stat.S_IMODE(os.fstat(file.fileno()).st_mode) & 0o077:
                raise ConfigError(str(path), f"others may read it; run `chmod 600 {path}`")
            return SecretStr(file.read())
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(str(path), f"it cannot be read ({type(error).__name__})") from error


def _replace(path: Path, rows: list[StoredKey]) -> None:
    """Replace the file in one step, so that no process reads a part of it."""
    text = json.dumps({"format": _FORMAT, "keys": [each._asdict() for each in rows]}, indent=1)
    # The temporary file has mode 0600.
    with tempfile.NamedTemporaryFile("w", dir=path.parent, delete=False, encoding="utf-8") as file:
        try:
            file.write(f"{text}\n")
            file.flush()
            os.fsync(file.fileno())
            Path(file.name).replace(path)
        except BaseException:
            Path(file.name).unlink()
            raise
