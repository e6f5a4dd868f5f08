"""`cueline run`: start a session, and watch it."""

from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from cueline.agents.preflight import check_log
from cueline.cli import open_log
from cueline.cli.option import (
    AtOption,
    AttachOption,
    EveryOption,
    MaxWallOption,
    ParameterOption,
    TimeBudgetOption,
    labels_of,
    parameters_of,
)
from cueline.cli.quiet_stderr import print_redacted
from cueline.cli.run_many import Many, run_many
from cueline.cli.run_options import RunOptions, takes_run_options
from cueline.cli.start_request import prepare_start, start
from cueline.cli.terminal import text_or_stdin
from cueline.client.start import StartOptions
from cueline.providers.factory import retirements

_NO_GOAL = "say something: GOAL is missing"


@takes_run_options
def run(
    options: RunOptions,
    goal: Annotated[
        str | None,
        typer.Argument(
            metavar="GOAL",
            help="What the agent is to do; `-` reads it from stdin. Or the file of an agent "
            "that needs no goal: a workflow or procedure.",
        ),
    ] = None,
    *,
    parameter: ParameterOption = None,
    agent: Annotated[
        Path | None,
        typer.Option(
            "--agent",
            "-a",
            metavar="FILE",
            help="The agent's TOML file; without it `default`, the built-in agent.",
        ),
    ] = None,
    attach: AttachOption = None,
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
    stay_open: Annotated[
        bool,
        typer.Option("--open", help="Stay open for more messages: type them here, or use `send`."),
    ] = False,
    auto_approve: Annotated[
        bool, typer.Option("--auto-approve", help="Grant every request, and record it so.")
    ] = False,
    require_approval: Annotated[
        bool,
        typer.Option(
            "--require-approval", help="Ask before sensitive calls, even if the file says `off`."
        ),
    ] = False,
    max_turns: Annotated[
        int | None, typer.Option(metavar="N", help="Model calls before it waits for a person.")
    ] = None,
    max_tokens: Annotated[
        int | None,
        typer.Option(metavar="N", help="Tokens, sent and answered, of it and all it starts."),
    ] = None,
    max_cost: Annotated[
        str | None, typer.Option(metavar="USD", help="US dollars, of it and all it starts.")
    ] = None,
    time_budget: TimeBudgetOption = None,
    max_wall: MaxWallOption = None,
    name: Annotated[
        str | None,
        typer.Option("--id", metavar="ID", help="The session's id, instead of a random one."),
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(
            metavar="KEY", help="Start it once: with the same key again, it is the same session."
        ),
    ] = None,
    many: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Instead of GOAL: a session for each line, as JSON."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option(metavar="N", min=1, help="With --many: so many run at a time.")
    ] = 50,
    at: AtOption = None,
    every: EveryOption = None,
    label: Annotated[
        list[str] | None,
        typer.Option(
            "--label", help="A label, for `list --label` and SQL; repeatable.", metavar="KEY=VALUE"
        ),
    ] = None,
) -> None:
    """Start a session, and watch it until it ends, rests, or waits for a person.

    Without --agent it is the built-in agent, which works on the files of the current
    folder, and asks before it writes or runs a command. It uses the first provider
    that has a key, else a server on this machine that needs none.

    It goes to the running `cueline up` of the log, else to the Ray that --address or
    RAY_ADDRESS names; otherwise it runs in this process. Everything is checked before
    anything is recorded. Without a terminal nobody is asked: if the session waits for
    a person, `run` exits with 3 and says how to approve. Ctrl-C once asks it to
    pause, and says how to go on; twice leaves at once, and nothing that was recorded
    is lost.

    With --many, each line of a file is a goal as JSON text, or an object with `goal`
    or `parameters` and, if you like, `key` and `labels`. The same command again goes
    on where it was left: nothing is started twice. --key NAME starts all anew.

    With --at it is recorded now and starts then, when `cueline up` runs; --every starts
    another one after each such time. A missed time starts late, once. `cueline list`
    shows when; `cueline stop` of the session that waits ends it, and its series.

    \b
    Examples:
      cueline run "What is in this folder?"
      cueline run "Tidy the notes" --agent agent.toml --workspace notes
      cueline run "Let us tidy the notes" --agent agent.toml --open
      cueline run resize.toml -p path=cat.png -p width=200
      cueline run "Answer the mail" --agent clerk.toml --require-approval
      cueline run "Answer the mail" --agent clerk.toml --key mail-2026-05-04
      cueline run "Tidy the notes" --agent agent.toml --at 07:30 --every 1d
      cueline run --many tasks.jsonl --agent clerk.toml --concurrency 50
      cueline run "Index everything" --agent indexer.toml --detach --label team=search
    """
    flags = {
        "limits.max_turns": ("--max-turns", max_turns),
        "limits.max_tokens": ("--max-tokens", max_tokens),
        "limits.max_cost": ("--max-cost", max_cost),
        "limits.max_active_seconds": ("--time-budget", time_budget),
        "limits.max_wall_seconds": ("--max-wall", max_wall),
        "allow_base_urls": ("--allow-base-url", tuple(allow_base_url or ()) or None),
        "policy.auto_approve": ("--auto-approve", auto_approve or None),
    }
    texts, said, tasks = parameters_of(parameter), goal, None
    if many is not None:
        alone: dict[str, object] = {"GOAL": goal, "--id": name, "--parameter": parameter}
        _check_alone(options, alone | {"--at": at, "--every": every})
        tasks = Many.read(many, concurrency, key)
        options, key = replace(options, attended=False), None
        said, texts = tasks.first.goal, tasks.first.texts
    elif goal is not None and agent is None and goal.endswith(".toml") and len(goal.split()) == 1:
        agent, said = Path(goal), None
    elif goal is not None:
        said = text_or_stdin(goal)
    elif agent is None:
        raise typer.BadParameter(_NO_GOAL)
    if at is not None or every is not None:
        options = _detached(options, "--every" if at is None else "--at")
    wanted = StartOptions(
        goal=said,
        texts=texts,
        labels=labels_of(label),
        open=stay_open,
        id=name,
        key=key,
        attachments=attach or (),
        at=at,
        every=every,
        without_secrets=options.without_secrets,
    )
    request = prepare_start(
        options,
        agent,
        wanted,
        flags=flags,
        require_approval=require_approval,
        workspace=workspace,
    )
    asked = request.asked.agent
    if many is None and said is None and asked.plan is None and asked.parameters_schema is None:
        raise typer.BadParameter(_NO_GOAL)
    for line in retirements(asked):
        print_redacted(f"warning: {line}", options.context)
    if tasks is not None:
        raise typer.Exit(open_log.run(run_many(tasks, request, options)))
    raise typer.Exit(open_log.run(start(request, options)))


def _detached(options: RunOptions, option: str) -> RunOptions:
    """Return *options* for a session that waits for its time, without this command.

    Raises:
        BadParameter: it is to be driven by this command.
        LogUnavailableError: no other process could run it.
    """
    if options.on != "auto":
        raise typer.BadParameter(f"{option} and --{options.on} exclude each other")
    check_log(options.log, shared=True)
    return replace(options, detach=True, attended=False)


def _check_alone(options: RunOptions, others: dict[str, object]) -> None:
    """Refuse what makes no sense for many sessions.

    Raises:
        BadParameter: one of *others*, or of the options, was given.
    """
    streams = {"--detach": options.detach, "--json-stream": options.json_stream}
    for option, given in (others | streams).items():
        if given:
            raise typer.BadParameter(f"--many and {option} exclude each other")
