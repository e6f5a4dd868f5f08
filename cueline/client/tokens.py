"""The tokens of a log: texts by which programs and browsers show who they are.

A text is `cue_<id>_<secret>_<checksum>`. The log has the SHA-256 of the text: with 256 random
bits, a slow hash would protect nothing more. The checksum (CRC-32) tells a text that was cut
off or mistyped from one that is unknown.
"""

import hmac
import re
import secrets
import string
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import sha256
from typing import Final
from uuid import uuid4

from cueline.actors.fold import fold
from cueline.client.context import Connection
from cueline.client.remote import at_server
from cueline.deciders.person import SCOPES as SCOPES  # noqa: PLC0414 - commands explain them
from cueline.deciders.person import Person, wrong_scope
from cueline.deciders.token import TOKEN, Exchange, Issue, Revoke, TokenCommand, TokenState
from cueline.errors import ConfigError, RejectedError, WrongExpectedVersionError
from cueline.events.journal import FactWrite
from cueline.events.store import NO_STREAM
from cueline.events.stream import stream_name
from cueline.events.token import (
    TOKEN_STREAM,
    TokenEvent,
    TokenIssued,
    TokenKind,
    TokenRevoked,
)
from cueline.runtime.open_log import OpenLog

DAYS: Final = 30
"""How long a token counts, if its issuer says nothing."""
CODE_SECONDS: Final = 300
"""How long a code can sign a browser in."""
BROWSER_HOURS: Final = 12
"""How long a browser is signed in."""
GRACE_SECONDS: Final = 3600
"""How long a replaced token still counts."""
_LONGEST_DAYS: Final = 3660
_LETTERS: Final = string.ascii_letters + string.digits
_TEXT: Final = re.compile(r"cue_([a-z0-9]{8})_([A-Za-z0-9]{43})_([0-9a-f]{8})")
_UNKNOWN: Final = "there is no such token that counts; `cueline tokens list` shows those of the log"
_PERSON: Final = re.compile(r"[^\s:/][^\s:/]{0,79}")


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenRow:
    """A token, without its text."""

    id: str
    kind: TokenKind
    person: str
    tenant: str | None
    scopes: tuple[str, ...]
    status: str
    """`valid`, `expired`, `revoked`, `used` or `replaced`."""
    issued_at: datetime
    issued_by: str
    expires_at: datetime
    note: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NewToken:
    """A token that was issued now; nobody can read its text later."""

    id: str
    text: str
    expires_at: datetime


class TokenBook:
    """The folded tokens of a log, up to the read version."""

    def __init__(self, log: OpenLog) -> None:
        self._log, self._journal = log, log.journal()
        self._state, self._version = TOKEN.initial_state, NO_STREAM

    async def read(self) -> TokenState:
        """Read the new events, and return the tokens by id."""
        self._state, self._version = await fold(
            self._journal, TOKEN_STREAM, TOKEN, self._state, self._version
        )
        return self._state

    async def record(
        self, decided: Callable[[TokenState], TokenCommand], *, by: str
    ) -> Sequence[TokenEvent]:
        """Append the events of the command that *decided* returns for the newest state."""
        while True:
            state = await self.read()
            events = TOKEN.decide(decided(state), state)
            if not events:
                return []
            write = FactWrite(
                stream=TOKEN_STREAM,
                steps=[events],
                expected_version=self._version,
                actor=f"user:{by}",
            )
            try:
                await self._journal.append([write], key=uuid4().hex)
            except WrongExpectedVersionError:
                continue
            return events

    async def issued_to(self, text: str) -> TokenIssued | None:
        """Return the valid token with this *text*; None if there is none."""
        match = _TEXT.fullmatch(text)
        if match is None or match[3] != _checksum(match[1], match[2]):
            return None
        token = (await self.read()).get(match[1])
        if token is None or not hmac.compare_digest(token.issued.digest, _digest(text)):
            return None
        return token.issued if token.counts(self._log.clock.now()) else None

    async def counts(self, token: str) -> bool:
        """Whether the token with this id is valid."""
        found = (await self.read()).get(token)
        return found is not None and found.counts(self._log.clock.now())

    async def exchange(
        self, token: TokenIssued, *, kind: TokenKind, seconds: float, grace_seconds: float = 0
    ) -> NewToken | None:
        """Give another token for *token*, with the same rights; None if *token* has ended."""
        now = self._log.clock.now()
        made, text = _made(token, kind, now, now + timedelta(seconds=seconds), token.person)
        end = TokenRevoked(
            token=token.token,
            at=now + timedelta(seconds=grace_seconds),
            by=token.person,
            reason="used" if token.kind == "code" else "replaced",
        )
        if not await self.record(lambda _: Exchange(end, made), by=token.person):
            return None
        return NewToken(id=made.token, text=text, expires_at=made.expires_at)


def person_of(token: TokenIssued) -> Person:
    """Return who has *token*, and what they may do."""
    return Person(token.person, token.tenant, frozenset(token.scopes))


@at_server
async def tokens(client: Connection) -> list[TokenRow]:
    """Return the tokens of the log, the newest first; nobody can read their texts.

    Raises:
        ForbiddenError: it needs the scope `admin`.
    """
    client.log.check_may("admin")
    now = client.log.clock.now()
    rows = []
    for each in (await TokenBook(client.log).read()).values():
        issued = each.issued
        ended = "" if each.revoked is None or each.revoked.at > now else each.revoked.reason
        rows.append(
            TokenRow(
                id=issued.token,
                kind=issued.kind,
                person=issued.person,
                tenant=issued.tenant,
                scopes=issued.scopes,
                status=ended or ("valid" if now < issued.expires_at else "expired"),
                issued_at=issued.at,
                issued_by=issued.by,
                expires_at=issued.expires_at,
                note=issued.note,
            )
        )
    return rows[::-1]


@at_server
async def issue_token(
    client: Connection,
    person: str,
    *,
    scopes: Sequence[str] = ("read",),
    tenant: str | None = None,
    days: float = DAYS,
    note: str = "",
) -> NewToken:
    """Issue a token, and return its text, which is not recorded.

    Args:
        client: of somebody with the scope `admin`.
        person: the name that is recorded with each of its requests.
        scopes: `read`, `send`, `approve`, `approve:TOOL` and `admin`; each includes `read`.
        tenant: the tenant whose sessions it reaches; by default the whole log.
        days: the days until it expires.
        note: what it is for.

    Raises:
        ConfigError: the name, a scope, the tenant or the time is wrong; nothing was recorded.
        ForbiddenError: it needs the scope `admin`.
    """
    client.log.check_may("admin")
    seconds = _seconds_of(days)
    return await _issue(client, "token", person, scopes, tenant, seconds, note)


async def issue_code(
    client: Connection,
    person: str,
    *,
    scopes: Sequence[str] = ("admin",),
    tenant: str | None = None,
    seconds: float = CODE_SECONDS,
) -> NewToken:
    """Issue a code with which a browser signs in as *person*, once.

    Raises the errors of `issue_token`.
    """
    client.log.check_may("admin")
    return await _issue(client, "code", person, scopes, tenant, seconds, "")


@at_server
async def revoke_token(client: Connection, token: str) -> TokenRow:
    """End a token at once.

    Args:
        client: of somebody with the scope `admin`.
        token: its id.

    Raises:
        RejectedError: no token with this id counts.
        ForbiddenError: it needs the scope `admin`.
    """
    client.log.check_may("admin")
    book, user = TokenBook(client.log), client.log.user
    ended = TokenRevoked(token=token, at=client.log.clock.now(), by=user)
    if not await book.record(lambda _: Revoke(ended), by=user):
        raise RejectedError(token, _UNKNOWN)
    return next(each for each in await tokens(client) if each.id == token)


@at_server
async def rotate_token(client: Connection, token: str, *, days: float = DAYS) -> NewToken:
    """Replace a token by one with the same rights; the old one counts for an hour more.

    Args:
        client: of somebody with the scope `admin`.
        token: its id.
        days: the days until the new one expires.

    Raises:
        ConfigError: the time is wrong.
        RejectedError: no token with this id counts.
        ForbiddenError: it needs the scope `admin`.
    """
    client.log.check_may("admin")
    seconds, book = _seconds_of(days), TokenBook(client.log)
    old = (await book.read()).get(token)
    made = None
    if old is not None and old.issued.kind == "token":
        made = await book.exchange(
            old.issued, kind="token", seconds=seconds, grace_seconds=GRACE_SECONDS
        )
    if made is None:
        raise RejectedError(token, _UNKNOWN)
    return made


async def _issue(  # noqa: PLR0917
    client: Connection,
    kind: TokenKind,
    person: str,
    scopes: Sequence[str],
    tenant: str | None,
    seconds: float,
    note: str,
) -> NewToken:
    if not _PERSON.fullmatch(person):
        raise ConfigError("person", f"{person!r} is no name: 1 to 80 characters without space : /")
    if not scopes or (wrong := wrong_scope(scopes)) is not None:
        why = f"{wrong!r} is no scope" if scopes else "it is missing"
        raise ConfigError("scope", f"{why}; the scopes are {', '.join(SCOPES)} and approve:TOOL")
    if tenant is not None:
        stream_name("session", "x", tenant)  # its form
        if "admin" in scopes:
            raise ConfigError("scope", "`admin` is for the whole log: leave the tenant out")
    now = client.log.clock.now()
    pattern = TokenIssued(
        token="",
        digest="",
        kind=kind,
        person=person,
        tenant=tenant,
        scopes=tuple(dict.fromkeys(scopes)),
        at=now,
        expires_at=now,
        by=client.log.user,
        note=note,
    )
    made, text = _made(pattern, kind, now, now + timedelta(seconds=seconds), client.log.user)
    await TokenBook(client.log).record(lambda _: Issue(made), by=client.log.user)
    return NewToken(id=made.token, text=text, expires_at=made.expires_at)


def _seconds_of(days: float) -> float:
    if not 0 < days <= _LONGEST_DAYS:
        raise ConfigError("days", f"{days:g} is not between 0 and {_LONGEST_DAYS}")
    return timedelta(days=days).total_seconds()


def _made(
    pattern: TokenIssued, kind: TokenKind, now: datetime, until: datetime, by: str
) -> tuple[TokenIssued, str]:
    """Return a token with the rights of *pattern*, and its text."""
    name = "".join(secrets.choice(string.ascii_lowercase + string.digits) for _ in range(8))
    secret = "".join(secrets.choice(_LETTERS) for _ in range(43))
    text = f"cue_{name}_{secret}_{_checksum(name, secret)}"
    told = {"token": name, "digest": _digest(text), "kind": kind, "at": now, "by": by}
    return pattern.model_copy(update={**told, "expires_at": until}), text


def _digest(text: str) -> str:
    return sha256(text.encode()).hexdigest()


def _checksum(name: str, secret: str) -> str:
    return f"{zlib.crc32(f'{name}_{secret}'.encode()):08x}"
