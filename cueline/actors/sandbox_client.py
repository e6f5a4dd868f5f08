"""Asks the pool for the sandbox of a session, before a call that runs in it."""

import os
from datetime import timedelta
from decimal import Decimal

from cueline.actors.agent_cache import LoadedAgent
from cueline.actors.entity import Entity
from cueline.actors.host_dependencies import HostDependencies
from cueline.actors.sandbox_pool import SandboxReady, SandboxWish, SlotWait
from cueline.actors.tool_port import SandboxPlace
from cueline.deciders.session.due import AttachSandbox
from cueline.errors import ConfigError, SandboxError
from cueline.events.agent import ToolSpec
from cueline.events.agent_parts import variables_in, with_values
from cueline.events.codes import Cause
from cueline.events.sandbox import SandboxSpec
from cueline.events.session import SandboxAttached, SessionWaiting


class SandboxClient:
    """The sandbox of one session."""

    __slots__ = ("_dependencies", "_entity", "_loaded_agent")

    def __init__(
        self, entity: Entity, loaded_agent: LoadedAgent, dependencies: HostDependencies
    ) -> None:
        self._entity = entity
        self._loaded_agent = loaded_agent
        self._dependencies = dependencies

    async def attach(self, effect: AttachSandbox) -> SandboxAttached | SessionWaiting:
        """Start the session's sandbox for the call of *effect*.

        Returns a wait if no slot is free, and a pause for a person if the back-end fails.
        """
        spec = self._loaded_agent.agent.sandbox
        assert spec is not None, "the agent has a sandbox"
        try:
            ready = await self._ask(spec)
        except (SandboxError, ConfigError) as error:
            cause = Cause(code="sandbox_failed", message=error.reason)
            return self._loaded_agent.clean(SessionWaiting(kind="operator", cause=cause))
        if isinstance(ready, SandboxReady):
            attached = SandboxAttached(number=ready.number, place=ready.place, lost=ready.lost)
            return self._loaded_agent.clean(attached)
        until = self._dependencies.clock.now() + timedelta(seconds=spec.wait_seconds)
        return SessionWaiting(
            kind="sandbox",
            cause=Cause(code="no_slot", of=Decimal(ready.slots), times=ready.ahead),
            deadline_at=until,
            effects=(effect.effect,),
        )

    async def _ask(self, spec: SandboxSpec) -> SandboxReady | SlotWait:
        pool, state = self._dependencies.sandboxes, self._entity.state
        if pool is None:
            raise SandboxError(spec.backend, "there is no pool of sandboxes here")
        missing = sorted({*variables_in(spec.environment)} - os.environ.keys())
        if missing:
            raise ConfigError("sandbox.environment", f"${missing[0]} is not set here: set it")
        environment = with_values(spec.environment, os.environ)
        return await pool.attach(SandboxWish(state.stream, spec, state.sandbox.number, environment))

    def place(self, tool: ToolSpec) -> SandboxPlace | None:
        """Return the sandbox in which a call of *tool* runs; None: it runs at the runner."""
        spec = self._loaded_agent.agent.sandbox
        if spec is None or not tool.needs_workspace:
            return None
        return SandboxPlace(spec, self._entity.state.sandbox.place)
