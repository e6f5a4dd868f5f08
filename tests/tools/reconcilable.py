"""Tools that can say what became of a call, and some that cannot."""

import os

from cueline.actors.tool_port import ReconcileFinding
from cueline.tools.tool import tool


def lookup(key: str) -> tuple[str, dict[str, str]]:
    return "happened", {"key": key, "pid": str(os.getpid())}


async def lookup_in_loop(key: str) -> ReconcileFinding:
    return ReconcileFinding("happened", f"{key} in {os.getpid()}")


def never(key: str) -> str:
    return "did_not_happen"


def no_idea(key: str) -> str:
    return "unknown"


def nonsense(key: str) -> str:
    return f"perhaps {key}"


def unreachable(key: str) -> str:
    raise ConnectionError(key)


@tool(reconcile=lookup)
def known() -> None: ...


@tool(reconcile=lookup_in_loop)
async def known_in_loop() -> None: ...


@tool(reconcile=lookup)
async def known_by_sync() -> None: ...


@tool(reconcile=lookup_in_loop)
def known_by_async() -> None: ...


@tool(reconcile=never)
def undone() -> None: ...


@tool(reconcile=no_idea)
def doubtful() -> None: ...


@tool(reconcile=nonsense)
def confused() -> None: ...


@tool(reconcile=unreachable)
def failing() -> None: ...


@tool
def undeclared() -> None: ...
