"""The fact about a proposal: stream `proposal-<tenant>/<nonce>`.

A proposal is not recorded. A commit is the message that it sends, whose cause names the proposal.
"""

from typing import Literal

from cueline.events.fact import Fact


class ProposalRejected(Fact):
    """A person gave up a proposal, so that it cannot be committed."""

    type: Literal["ProposalRejected"] = "ProposalRejected"
    action: str
    """The kind of the request: `send`, `pause` …"""
    session: str = ""
    """The stream of the session; empty: the proposal was to start one."""
