"""The facts of the tokens of one log: stream `token-default/main`.

A token is a text by which a program or a browser shows who it is. The stream has no owner:
every append is a compare-and-set on its version. The log has only the digest of a token.
"""

from typing import Final, Literal

from pydantic import AwareDatetime

from cueline.events.fact import Fact
from cueline.events.stream import stream_name

TOKEN_STREAM: Final = stream_name("token", "main")
TokenKind = Literal["token", "code", "browser"]
"""A `token` is for programs; a `code` signs a browser in, once; a `browser` has signed in."""


class TokenIssued(Fact):
    """A person or program got a token."""

    type: Literal["TokenIssued"] = "TokenIssued"
    token: str
    """The id of the token, the part of its text that is no secret."""
    digest: str
    """The SHA-256 of the text, in hex."""
    kind: TokenKind = "token"
    person: str
    """The name of whoever has it, which is recorded with each request."""
    tenant: str | None = None
    """The tenant whose sessions it reaches; None: the whole log."""
    scopes: tuple[str, ...]
    """What its bearer may do: see `Person`."""
    at: AwareDatetime
    expires_at: AwareDatetime
    by: str
    """The person who issued it."""
    note: str = ""
    """What it is for."""


class TokenRevoked(Fact):
    """A token counts no longer."""

    type: Literal["TokenRevoked"] = "TokenRevoked"
    token: str
    at: AwareDatetime
    by: str
    reason: Literal["revoked", "used", "replaced"] = "revoked"
    """`used`: a code that has signed a browser in; `replaced`: by a token with the same rights."""


TokenEvent = TokenIssued | TokenRevoked
