"""The facts of sandboxes, and of the slots that limit how many are started.

Both kinds of streams have no owner: every append is a compare-and-set. A sandbox's stream has the
intent before each act (I2), so that a crash leaves no sandbox that nobody knows of.
"""

from functools import partial
from operator import eq, not_
from typing import Any, Final, Literal, Self

from pydantic import AwareDatetime, Field, model_validator

from cueline.events.agent_parts import variables_in
from cueline.events.fact import Fact, Number, Part, Seconds, Whole

MAIN_POOL: Final = "main"
VOLUME_NAME: Final = r"^([a-z0-9][a-z0-9_-]*)?$"
REFERENCE: Final = r"^(\$[A-Za-z_][A-Za-z0-9_]*)?$"


class SandboxSpec(Part):
    """What a sandbox has; recorded with the agent."""

    backend: str
    """`local`, `worktree`, `container`, `ray`, `daytona`, or one that a package adds."""
    image: str = Field(default="", exclude_if=not_)
    """The image of the sandbox's system; empty: the back-end's own."""
    workspace: str = Field(default="", exclude_if=not_)
    """The folder of this machine that the sandbox sees, at the same path; empty: its own."""
    volume: str = Field(default="", pattern=VOLUME_NAME, exclude_if=not_)
    """The name of a volume, which is mounted at `/data`; it is made if it is missing."""
    cpus: Number = Field(default=1.0, gt=0)
    memory_mb: Whole = Field(default=2048, ge=64)
    network: bool = Field(default=False, exclude_if=not_)
    """Whether commands reach the network."""
    environment: dict[str, str] = Field(default={}, exclude_if=not_)
    """The variables of its commands; `$NAME` in a value stands for an environment variable of the
    host, whose value is not recorded."""
    git_token: str = Field(default="", pattern=REFERENCE, exclude_if=not_)
    """The token with which git logs in over HTTPS, as `$NAME`, a variable of the runner. Each
    command gets it anew; it is neither recorded nor kept in the sandbox."""
    wait_seconds: Seconds = Field(default=3600.0, gt=0, exclude_if=partial(eq, 3600.0))
    """The longest wait for a slot of the pool; then a person is asked."""
    auto_stop_seconds: Seconds = Field(default=3600.0, ge=60)
    """The time without activity after which the back-end itself stops the sandbox."""

    @property
    def variables(self) -> set[str]:
        """The environment variables whose values commands get."""
        return {*variables_in(self.environment), *filter(None, [self.git_variable])}

    @property
    def git_variable(self) -> str:
        """The name of the variable with the token of git; empty: none."""
        return self.git_token.removeprefix("$")

    def in_folder(self, folder: str) -> Self:
        """Return it with *folder*, the agent's workspace."""
        return self.model_copy(update={"workspace": folder})

    @model_validator(mode="before")
    @classmethod
    def _by_name(cls, given: Any) -> Any:
        return {"backend": given} if isinstance(given, str) else given


SandboxAct = Literal["create", "start", "stop", "delete"]


class SandboxAsked(Fact):
    """Somebody is about to do something with a sandbox; the intent comes before the act."""

    type: Literal["SandboxAsked"] = "SandboxAsked"
    act: SandboxAct
    session: str
    """The stream of the session."""
    spec: SandboxSpec
    at: AwareDatetime


class SandboxDone(Fact):
    """The back-end has done what was asked."""

    type: Literal["SandboxDone"] = "SandboxDone"
    act: SandboxAct
    place: str
    """The back-end's name of the sandbox."""
    at: AwareDatetime


class SandboxFailed(Fact):
    """The back-end could not do what was asked."""

    type: Literal["SandboxFailed"] = "SandboxFailed"
    act: SandboxAct
    message: str
    gone: bool = False
    """Whether the sandbox will never start again."""
    at: AwareDatetime


SandboxEvent = SandboxAsked | SandboxDone | SandboxFailed


class SlotAsked(Fact):
    """A session asked for a slot of the pool."""

    type: Literal["SlotAsked"] = "SlotAsked"
    session: str
    spec: SandboxSpec
    number: Whole = Field(ge=1)
    """The number of the session's sandbox."""
    slots: Whole = Field(ge=1)
    """The number of slots of the pool."""
    at: AwareDatetime


class SlotGranted(Fact):
    """A session got a slot."""

    type: Literal["SlotGranted"] = "SlotGranted"
    session: str


class SlotFreed(Fact):
    """A session has given back its slot, or waits for one no longer."""

    type: Literal["SlotFreed"] = "SlotFreed"
    session: str
    slots: Whole = Field(ge=1)
    at: AwareDatetime


SlotEvent = SlotAsked | SlotGranted | SlotFreed
