"""Resumes a session that crashed, was paused or was interrupted."""

from collections.abc import Collection
from dataclasses import dataclass

from cueline.actors.session_owner import check_resume, is_aside, owner_of
from cueline.agents.preflight import check_resumed
from cueline.agents.secret import waiver
from cueline.client.context import Connection
from cueline.client.current_session import CurrentSession, current_session, post
from cueline.client.receipt import Receipt, receipt_fields
from cueline.client.remote import RemoteRequest
from cueline.client.session import Session
from cueline.deciders.session import rests
from cueline.deciders.session.current_agent import with_tools
from cueline.deciders.session.delegation import with_children
from cueline.deciders.session.messages import waived_secrets
from cueline.events.agent import ToolSpec
from cueline.events.inbox import ResumeAsked, SecretsWaived
from cueline.events.stream import shown


@dataclass(frozen=True, slots=True)
class ResumeRequest:
    """A checked resume that is not recorded yet."""

    now: CurrentSession
    waived: SecretsWaived | None
    tools: tuple[ToolSpec, ...]
    """The accepted changed tools, in their current form."""
    aside: bool
    """Whether a host has set the session aside."""
    owned: bool
    """Whether a living process drives the session."""

    @property
    def stream(self) -> str:
        """The stream of the session."""
        return self.now.state.stream

    async def submit(self, client: Connection, *, key: str | None = None) -> Session:
        """Record the messages, and run the session at the place of *client*.

        With a *key*, the request to continue is always recorded, once.

        Raises:
            ToolImportError: a runner of the cluster cannot run its tools.
        """
        if not self.now.stopping:
            agents = with_children(with_tools(self.now.agent, self.tools))
            await client.place.check_tools(agents)
        # Also for a session that was asked to stop: a host may have set it aside.
        client.place.tries_again(self.stream)
        if self.waived is not None:
            await post(client, self.now, self.waived)
        said, at = ResumeAsked(tools=self.tools), None
        if key is not None or self._has_to_be_told(client):
            at = await post(client, self.now, said, key=key)
        await client.place.take_up(self.stream)
        receipt = Receipt(**await receipt_fields(client, self.stream, said.type, at))
        return Session(client, self.stream, receipt, (self.now.agent.output,))

    def _has_to_be_told(self, client: Connection) -> bool:
        """Whether the session needs a message to continue; otherwise its driver continues it."""
        state = self.now.state
        # A question that is not over is answered, not gone on after.
        waits = state.waiting is not None and not rests(state, client.log.clock.now())
        asks = (self.now.held or waits) and not self.now.stopping
        # The driver has set the session aside, or does not continue it in this state.
        left = self.aside or (not self.owned and not client.place.drives)
        return asks or left or bool(self.tools)


async def resume_request(
    client: Connection,
    stream: str,
    *,
    accept_changed_tools: bool,
    accept_with: str,
    without_secrets: Collection[str],
) -> ResumeRequest | RemoteRequest:
    """Check a resume, and return it. *accept_with* is the option that accepts changed tools.

    The server of a log checks it later, when it is sent.

    Raises the errors of `Client.resume`.
    """
    client.log.check_may("send")
    if client.log.server is not None:
        changed = {"accept_changed_tools": accept_changed_tools}
        return RemoteRequest(stream, "resume", {"id": shown(stream), **changed})
    log, now = client.log, await current_session(client.cache, stream)
    owner = await owner_of(log.store, log.board, stream, log.clock.now())
    ours = owner is not None and client.place.has(owner.incarnation)
    check_resume(now.state, now.unread, None if ours else owner)
    waived = waiver(now.agent, without_secrets, log.user)
    tools: tuple[ToolSpec, ...] = ()
    if not now.stopping:  # a session that ends starts nothing and asks nobody
        tools = check_resumed(
            now.agent,
            log.url,
            waived=waived_secrets(now.state, [*now.unread, waived]),
            accept_changed_tools=accept_changed_tools,
            accept_with=accept_with,
        )
    aside = is_aside((await log.store.head(stream)).owner)
    return ResumeRequest(now, waived, tools, aside=aside, owned=owner is not None)
