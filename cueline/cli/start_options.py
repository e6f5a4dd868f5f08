"""The options of `run` for a session and its agent, and the checked start from them."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer

from cueline.agents.agent import Agent
from cueline.agents.agent_file import NAME as BUILT_IN
from cueline.agents.agent_file import SHARED
from cueline.agents.preflight import commands_problem_beside
from cueline.cli import open_log
from cueline.cli.failure import print_redacted
from cueline.cli.option import (
    AtOption,
    AttachOption,
    EveryOption,
    ParameterOption,
    labels_of,
    limits_of,
    parameters_of,
    takes,
)
from cueline.cli.run_options import RunOptions
from cueline.cli.session_run import seconds_to_answer
from cueline.client.start import StartOptions, StartRequest, start_request
from cueline.config.config_source import Flags, from_flags
from cueline.config.environment import HERE, user_name
from cueline.config.settings import APPROVAL_SECONDS
from cueline.errors import ConfigError
from cueline.providers.defaults import usual_model
from cueline.providers.factory import retirements
from cueline.tools.shell import run_command


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentOptions:
    """The options about the agent; they take precedence over the agent's file."""

    file: Path | None
    """The agent's file; None: the built-in agent."""
    workspace: Path | None
    require_approval: bool
    flags: Flags

    def read(
        self, options: RunOptions, *, needs_model: bool = True
    ) -> tuple[Agent, Mapping[str, str]]:
        """Return the agent, and the source of each of its settings.

        If it *needs_model* and names none, it gets the usual model.

        Raises:
            ConfigError: correct the file, flag or variable that the message names.
        """
        file = self.file or Path(BUILT_IN)
        read = options.context.read_agent(file, from_flags(self.flags))
        agent, effective, _ = read
        read.check_addresses(file)
        refused = commands_problem_beside(options.log, self.workspace) if self.file is None else ""
        if refused:
            print_redacted(f"note: the built-in agent runs no commands: {refused}", options.context)
            kept = tuple(each for each in agent.tools if each != run_command.name)
            agent = agent.model_copy(update={"tools": kept, "tool_settings": {}})
        set_by = effective.sources.items()
        sources = {key: source for key, source in set_by if key.partition(".")[0] in SHARED}
        policy = agent.policy
        if APPROVAL_SECONDS not in effective.given:
            seconds = seconds_to_answer(options, effective.settings)
            policy = policy.model_copy(update={"approval_seconds": seconds})
        if self.require_approval and "sensitive" not in policy.approval:
            # Beside the profiles of the file, not in their place.
            profiles = dict.fromkeys((*policy.approval, "sensitive"))
            profiles.pop("off", None)
            policy = policy.model_copy(update={"approval": tuple(profiles)})
            sources["policy.approval"] = "flag --require-approval"
        workspace = self.workspace or agent.workspace
        agent = agent.model_copy(update={"policy": policy, "workspace": workspace})
        if needs_model and agent.names_no_model:
            provider, model = open_log.run(usual_model(HERE, user_name()))
            agent = agent.model_copy(update={"provider": provider, "model": model})
        return agent, sources


AgentOption = Annotated[
    Path | None,
    typer.Option(
        "--agent",
        "-a",
        metavar="FILE",
        help="The agent's TOML file; without it `default`, the built-in agent.",
    ),
]


@takes(limits_of)
def agent_options_of(
    limits: Flags,
    *,
    agent: AgentOption = None,
    allow_base_url: Annotated[
        list[str] | None,
        typer.Option(
            metavar="URL", help="Let the agent's file send its provider's key there; repeatable."
        ),
    ] = None,
    workspace: Annotated[
        Path | None,
        typer.Option(help="The folder of its files, instead of the agent's own.", metavar="DIR"),
    ] = None,
    auto_approve: Annotated[
        bool, typer.Option("--auto-approve", help="Grant every request, and record it so.")
    ] = False,
    require_approval: Annotated[
        bool,
        typer.Option(
            "--require-approval", help="Ask before sensitive calls, even if the file says `off`."
        ),
    ] = False,
) -> AgentOptions:
    """Return the options about the agent."""
    flags = {
        **limits,
        "allow_base_urls": ("--allow-base-url", tuple(allow_base_url or ()) or None),
        "policy.auto_approve": ("--auto-approve", auto_approve or None),
    }
    return AgentOptions(
        file=agent, workspace=workspace, require_approval=require_approval, flags=flags
    )


def start_options_of(
    *,
    parameter: ParameterOption = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Start it once: with the same key again, it is the same session."
        ),
    ] = None,
    at: AtOption = None,
    every: EveryOption = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", help="A label, for `list --label` and SQL; repeatable.", metavar="KEY=VALUE"
        ),
    ] = None,
) -> StartOptions:
    """Return the options about the session that `run` and `submit` share.

    Raises:
        ConfigError: a parameter or label has another form.
    """
    labels = labels_of(label)
    return StartOptions(texts=parameters_of(parameter), key=key, at=at, every=every, labels=labels)


@takes(start_options_of)
def session_options_of(
    start: StartOptions,
    *,
    attach: AttachOption = None,
    stay_open: Annotated[
        bool,
        typer.Option("--open", help="Stay open for more messages: type them here, or use `send`."),
    ] = False,
    name: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The session's id, instead of a random one."),
    ] = None,
) -> StartOptions:
    """Return the options of `run` about the session."""
    return replace(start, attachments=attach or (), open=stay_open, id=name)


def prepare(who: AgentOptions, start: StartOptions, options: RunOptions) -> StartRequest:
    """Check the start of a session, and return it.

    Raises:
        ConfigError: correct the file, flag or variable that the message names.
        ToolImportError: make the tool importable.
    """
    agent, sources = who.read(options)
    now = datetime.now(UTC)
    try:
        return start_request(agent, start, now=now, attached=options.attended, sources=sources)
    except ConfigError as error:
        if error.subject != agent.name:
            raise
        # A person mends it there.
        raise ConfigError(str(who.file or BUILT_IN), error.reason) from error


def warn_of_retirements(request: StartRequest, options: RunOptions) -> None:
    """Print to stderr the models of the agent that their vendor will end."""
    for line in retirements(request.asked.agent):
        print_redacted(f"warning: {line}", options.context)
