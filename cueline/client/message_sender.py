"""The messages that a person or a program may send to what is in a log."""

from collections.abc import Mapping, Sequence
from typing import Unpack

from cueline.actors.breaker_reset import reset_breaker
from cueline.actors.fold import SessionCache
from cueline.client.attachment import Attachable
from cueline.client.context import RuntimeContext
from cueline.client.decide import Decision, GrantDetails, decide, question_of
from cueline.client.fleet import Count, ScaleReceipt, scale
from cueline.client.message import NewLimits, pause, raise_limits, send, switch_model
from cueline.client.reader import Reader
from cueline.client.receipt import DecisionReceipt, PauseReceipt, Receipt, StopReceipt
from cueline.client.session import Session
from cueline.client.stop import stop
from cueline.config.environment import user_name
from cueline.errors import ConfigError
from cueline.events.agent import ModelChoice
from cueline.events.approval import ApprovalOpened
from cueline.events.inbox import Lane
from cueline.events.session import ApprovalRequested
from cueline.events.stream import session_stream
from cueline.wiring import OpenLog


class MessageSender(Reader):
    """An open log that takes messages for its sessions, breakers and fleet."""

    def __init__(self, log: OpenLog, context: RuntimeContext) -> None:
        super().__init__(log)
        self.context = context
        self.cache = SessionCache(log.journal())

    async def send(
        self,
        session: str,
        text: str,
        lane: Lane = "note",
        *,
        key: str | None = None,
        attachments: Sequence[Attachable] = (),
        model: str | ModelChoice | None = None,
        name: str = "",
    ) -> Receipt:
        """Say *text* to the agent of a session; see `Session.send`."""
        stream = await self.find(session)
        return await send(
            self, stream, text, lane, key=key, attachments=attachments, model=model, name=name
        )

    async def switch_model(
        self, session: str, model: str | ModelChoice, *, key: str | None = None
    ) -> Receipt:
        """Give the agent of a session another model; see `Session.switch_model`."""
        return await switch_model(self, await self.find(session), model, key=key)

    async def pause(self, session: str) -> PauseReceipt:
        """Have a session start nothing new; see `Session.pause`."""
        return await pause(self, await self.find(session))

    async def raise_limits(self, session: str, **limits: Unpack[NewLimits]) -> Receipt:
        """Let a session have more; see `Session.raise_limits`."""
        return await raise_limits(self, await self.find(session), limits)

    async def stop(self, session: str, reason: str = "") -> StopReceipt:
        """End a session; see `Session.stop`."""
        return await stop(self, await self.find(session), reason)

    async def approve(
        self, approval: str | ApprovalRequested, **said: Unpack[GrantDetails]
    ) -> DecisionReceipt:
        """Allow what waits for a person, by its id or its event; see `Session.approve`."""
        return await decide(self, approval, Decision(verdict="grant", **said))

    async def deny(
        self,
        approval: str | ApprovalRequested,
        by: str | None = None,
        note: str = "",
        *,
        channel: str = "api",
    ) -> DecisionReceipt:
        """Refuse what waits for a person, by its id or its event; see `Session.deny`."""
        decision = Decision(verdict="deny", by=by, note=note, channel=channel)
        return await decide(self, approval, decision)

    async def question(self, approval: str) -> ApprovalOpened:
        """Return what a person is asked.

        Raises:
            NotPendingError: nothing is, any more; the message says what became of it.
        """
        return await question_of(self, approval)

    def session(self, id: str) -> Session:  # noqa: A002 - the word of the log
        """Return the session of that id, or stream, to look at or to send messages to.

        Nothing is read yet: whether there is one is seen when it is used.

        Raises:
            InvalidNameError: no id has this form.
        """
        if not isinstance(id, str):
            raise ConfigError("session", f"{id!r} is no text; an id is text, such as '7f3a'")
        return Session(self, session_stream(id))

    async def reset_breaker(self, name: str, by: str | None = None) -> bool:
        """Have calls go out again that a breaker keeps back.

        Args:
            name: of the breaker, as `cueline breakers` shows it.
            by: who resets it; the login of this process, where nobody is named.

        Returns:
            Whether it was anything but closed.

        Raises:
            RejectedError: there is no such breaker.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        by = user_name() if by is None else by
        return await reset_breaker(self.log.journal(), name, by, self.log.clock.now())

    async def scale(
        self,
        *,
        hosts: Count | None = None,
        runners: Count | None = None,
        per_node: int | None = None,
        labels: Mapping[str, str] | None = None,
        resources: Mapping[str, float] | None = None,
        by: str | None = None,
    ) -> ScaleReceipt:
        """Ask for another number of hosts or runners; `cueline up` starts and retires them.

        Workers are counted by group: those of one kind with the same *per_node*, *labels* and
        *resources*. This sets the number of one group of each named kind, and of no other.
        It also counts if nothing runs now.

        Args:
            hosts: how many hosts, or the least and the most. Those above the least start when
                sessions wait for a place, and retire when they are idle.
            runners: how many runners, likewise.
            per_node: at most so many of the group on one node.
            labels: only on nodes that Ray knows by these labels; tools can demand them.
            resources: what each takes of its node: `cpus`, `gpus`, `memory` in bytes, or a
                resource of Ray's by its name; tools can demand them.
            by: who asks; the login of this process, where nobody is named.

        Raises:
            ConfigError: there can be no such number, label or resource; nothing was recorded.
            LogUnavailableError: the log cannot be used; do what the message says.
        """
        return await scale(
            self.log,
            {"host": hosts, "runner": runners},
            per_node=per_node,
            labels=labels or {},
            resources=resources or {},
            by=user_name() if by is None else by,
        )
