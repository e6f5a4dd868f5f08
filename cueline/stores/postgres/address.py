"""The place of a log in PostgreSQL: `postgresql://USER@HOST/DATABASE?schema=NAME`."""

import re
from typing import Final, NamedTuple

import psycopg
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from cueline.errors import ConfigError
from cueline.events.log_url import LogUrl

DEFAULT_SCHEMA: Final = "cueline"
_SCHEMA = re.compile(r"[?&]schema=([^&]*)")
_NAME = re.compile(r"[a-z_][a-z0-9_]{0,40}")
_SECRETS = ("password", "sslpassword")
_WAYS_OF_PASSWORDS = (
    "leave out the password, which other users would see: "
    "put it in PGPASSWORD or in the file ~/.pgpass"
)
# A dead server or network is noticed within seconds, not hours.
_DEFAULTS = {
    "connect_timeout": "5",
    "keepalives_idle": "10",
    "keepalives_interval": "5",
    "keepalives_count": "3",
    "tcp_user_timeout": "15000",
    "application_name": "cueline",
}


class Address(NamedTuple):
    """The connection to a database, and the schema of the log in it."""

    conninfo: str
    schema: str
    name: str
    """The log's URL, for messages."""

    @property
    def beside(self) -> str:
        """The schema of the data beside the log."""
        return f"{self.schema}_beside"


def address_of(url: LogUrl) -> Address:
    """Return the address that *url* names.

    Raises:
        ConfigError: *url* has a password, or is not valid; the message says what to write.
    """
    text = f"{url.scheme}:{url.rest}"
    found = _SCHEMA.search(text)
    schema = found[1] if found else DEFAULT_SCHEMA
    if not _NAME.fullmatch(schema):
        raise ConfigError(str(url), f"a schema is named by a-z, 0-9 and _, unlike {schema!r}")
    if found:
        rest = text[found.end() :]
        # The next option takes its address, also after the question mark.
        text = text[: found.start()] + (found[0][0] + rest[1:] if rest else "")
    if not url.rest.startswith("//"):
        raise ConfigError(str(url), "write `postgresql://HOST/DATABASE`")
    try:
        given = conninfo_to_dict(text)
    except psycopg.Error as error:
        raise ConfigError(str(url), str(error).strip()) from None
    if any(given.get(name) for name in _SECRETS):
        raise ConfigError(str(url), _WAYS_OF_PASSWORDS)
    options = f"-c default_transaction_isolation=read\\ committed {given.pop('options', '') or ''}"
    return Address(
        make_conninfo("", **{**_DEFAULTS, **given, "options": options}), schema, str(url)
    )
