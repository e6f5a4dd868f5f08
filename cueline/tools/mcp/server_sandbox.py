"""The isolation of an MCP server that is a command."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from pathlib import Path

from cueline.errors import ConfigError
from cueline.events.agent_parts import Isolation
from cueline.isolation.ladder import GIVE_UP
from cueline.isolation.program import with_program
from cueline.isolation.sandbox import Sandbox, sandbox
from cueline.tools.network_proxy import NetworkProxy


def server_sandbox(
    stack: AsyncExitStack,
    name: str,
    command: Sequence[str],
    *,
    isolation: Isolation,
    environment: dict[str, str],
    workspace: Path | None,
    hidden: Sequence[Path],
) -> Sandbox:
    """Return how to start the *command* of the server *name*; it holds until *stack* is closed.

    Raises:
        ConfigError: it cannot be isolated here, or a granted path cannot be granted.
    """
    try:
        proxy = None
        if not isinstance(isolation.network, bool):
            served = NetworkProxy(isolation.network)
            stack.callback(asyncio.create_task(served.serve()).cancel)
            proxy = served.descriptor
        granted, environment = with_program(command, isolation, environment, workspace)
        box = stack.enter_context(
            sandbox(
                command,
                isolation=granted,
                environment=environment,
                workspace=workspace,
                hidden=hidden,
                proxy=proxy,
            )
        )
    except ConfigError as error:
        raise ConfigError(f"MCP server {name}", error.reason) from None
    if box.restriction is not None:
        why = "Landlock isolates single commands only; install bubblewrap: `apt install bubblewrap`"
        raise ConfigError(f"MCP server {name}", f"{why}; or {GIVE_UP}")
    return box
