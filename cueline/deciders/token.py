"""The rules of the tokens of a log: issue, revoke, replace, and sign a browser in, once."""

from collections.abc import Mapping
from datetime import datetime
from types import MappingProxyType
from typing import assert_never

from msgspec import Struct

from cueline.deciders.decider import Decider
from cueline.events.token import TokenEvent, TokenIssued, TokenRevoked


class Token(Struct, frozen=True):
    """A token, and whether it was revoked."""

    issued: TokenIssued
    revoked: TokenRevoked | None = None

    def counts(self, now: datetime) -> bool:
        """Whether the token is valid at *now*."""
        ended = self.revoked is not None and self.revoked.at <= now
        return not ended and now < self.issued.expires_at


TokenState = Mapping[str, Token]
"""All tokens of a log, by id."""


class Issue(Struct, frozen=True):
    """The command to issue a token."""

    issued: TokenIssued


class Revoke(Struct, frozen=True):
    """The command to revoke a token."""

    revoked: TokenRevoked


class Exchange(Struct, frozen=True):
    """The command to give a new token for another one, which ends."""

    revoked: TokenRevoked
    issued: TokenIssued


TokenCommand = Issue | Revoke | Exchange


def decide(command: TokenCommand, state: TokenState) -> list[TokenEvent]:
    """Return the events of *command*; none if its token has ended, or does not exist."""
    match command:
        case Issue(issued=issued):
            return [issued]
        case Revoke(revoked=revoked):
            token = state.get(revoked.token)
            return [revoked] if token is not None and token.counts(revoked.at) else []
        case Exchange(revoked=revoked, issued=issued):
            token = state.get(revoked.token)
            lives = token is not None and token.revoked is None and token.counts(issued.at)
            return [revoked, issued] if lives else []
        case _:
            assert_never(command)


def evolve(state: TokenState, event: TokenEvent) -> TokenState:
    """Return *state* after *event*; codes and browsers that have expired are forgotten."""
    match event:
        case TokenIssued():
            kept = {name: each for name, each in state.items() if _is_kept(each, event.at)}
            return {**kept, event.token: Token(event)}
        case TokenRevoked():
            before = state.get(event.token)
            return state if before is None else {**state, event.token: Token(before.issued, event)}
        case _:
            assert_never(event)


def _is_kept(token: Token, now: datetime) -> bool:
    return token.issued.kind == "token" or now < token.issued.expires_at


TOKEN: Decider[TokenCommand, TokenState, TokenEvent] = Decider(
    initial_state=MappingProxyType({}), decide=decide, evolve=evolve
)
