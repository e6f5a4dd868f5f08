"""Starts a session: everything is checked before anything is recorded."""

from datetime import UTC, datetime
from pathlib import Path

from cueline.agents.agent_file import NAME as BUILT_IN
from cueline.agents.agent_file import SHARED
from cueline.agents.preflight import check_answerable, check_log_is_out_of_reach
from cueline.cli import open_log
from cueline.cli.exit_report import report
from cueline.cli.failure import Exit
from cueline.cli.run_options import RunOptions
from cueline.cli.session_run import Record, run_session
from cueline.cli.up_lookup import note_detached
from cueline.client.client import Client, open_client
from cueline.client.start import (
    StartOptions,
    StartRequest,
    check_id_is_free,
    start_request,
)
from cueline.config.config_source import Flags, from_flags
from cueline.config.environment import HERE, user_name
from cueline.config.settings import APPROVAL_SECONDS, Settings
from cueline.console.screen import Screen
from cueline.errors import ConfigError
from cueline.providers.defaults import usual_model


def prepare_start(
    options: RunOptions,
    file: Path | None,
    start: StartOptions,
    *,
    flags: Flags,
    require_approval: bool,
    workspace: Path | None,
) -> StartRequest:
    """Return what is asked for, checked; *flags* go before what the agent's *file* says.

    Without a *file* it is the built-in agent.

    Raises:
        ConfigError: mend the file, flag or variable that it names.
        ToolImportError: make the tool importable.
    """
    outside = options.context
    if file is None:
        file = Path(BUILT_IN)
    read = outside.read_agent(file, from_flags(flags))
    agent, effective, _ = read
    read.check_addresses(file)
    sources = {key: at for key, at in effective.sources.items() if key.partition(".")[0] in SHARED}
    policy = agent.policy
    if APPROVAL_SECONDS not in effective.given:
        seconds = seconds_to_answer(options, effective.settings)
        policy = policy.model_copy(update={"approval_seconds": seconds})
    if require_approval and "sensitive" not in policy.approval:
        # Beside what else is asked for, not in its place.
        profiles = dict.fromkeys((*policy.approval, "sensitive"))
        profiles.pop("off", None)
        policy = policy.model_copy(update={"approval": tuple(profiles)})
        sources["policy.approval"] = "flag --require-approval"
    asked = agent.model_copy(update={"policy": policy, "workspace": workspace or agent.workspace})
    if asked.names_no_model:
        provider, model = open_log.run(usual_model(HERE, user_name()))
        asked = asked.model_copy(update={"provider": provider, "model": model})
    try:
        return start_request(
            asked,
            start,
            now=datetime.now(UTC),
            attached=options.attended,
            sources=sources,
        )
    except ConfigError as error:
        if error.subject != agent.name:
            raise
        raise ConfigError(str(file), error.reason) from error  # a person mends it there


def seconds_to_answer(options: RunOptions, settings: Settings | None = None) -> float:
    """Return how long a question waits where the policy does not say it."""
    approval = (settings or options.context.settings).approval
    return approval.attached_seconds if options.attended else approval.detached_seconds


async def start(request: StartRequest, options: RunOptions) -> Exit:
    """Record the wish, and run and show the session, unless it is detached.

    Raises:
        RejectedError: the id is taken.
        ConfigError: it would ask, and nobody can be asked; or its tools would reach the log.
        LogUnavailableError: the log cannot be used; nothing was recorded.
    """
    agent = request.asked.agent
    check_answerable(agent, options.log, attended=options.attended)
    check_log_is_out_of_reach(agent, options.log)
    async with open_client(options.log, must_exist=False) as client:
        if request.key is None:
            await check_id_is_free(client.log, request.id)
        return await carry_on(client, request.stream, options, request.submit)


async def carry_on(
    client: Client, stream: str, options: RunOptions, record: Record, *, show_past: bool = True
) -> Exit:
    """Record what is wished, and run and show the session, unless it is detached.

    Raises:
        ClusterError: there is no Ray to run it; nothing was recorded.
        CuelineError: it cannot be driven, or not be read.
    """
    if options.detach:
        session = await record(client)
        assert session.receipt is not None, "what was recorded just now has a receipt"
        return note_detached(options.log, session.receipt, as_json=options.as_json)
    screen = Screen(quiet=options.as_json, plain=options.plain)
    terminal, rested = await run_session(
        client, stream, options, record, screen=screen, show_past=show_past
    )
    return report(terminal, options, rested=rested)
