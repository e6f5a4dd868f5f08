"""The command line: one module a concept, put together here.

A command imports what it needs when it runs, so that `--help` and `list` are
quick and Ray is loaded only where sessions run on it.
"""

from pathlib import Path
from typing import Annotated, Any

import typer

from cueline.cli import (
    approve,
    audit,
    breakers,
    budget,
    costs,
    doctor,
    down,
    export,
    fleet,
    fork,
    init,
    keys,
    log,
    message,
    pending,
    policy,
    providers,
    replay,
    rerun,
    resume,
    run,
    runs,
    scale,
    session_list,
    settings,
    show,
    status,
    stop,
    submit,
    tail,
    up,
    workflow,
)
from cueline.cli.failure import Commands
from cueline.cli.terminal import settle_streams

_HELP = """Run LLM agents that cannot be lost.

Every turn and tool call is an event in a log before anything acts on it; to
resume is to replay.

\b
Start a session and watch it:
  cueline run "Tidy the notes" --agent agent.toml --workspace notes
See what there is, and go on with one that was cut off:
  cueline list
  cueline resume 7f3a
"""

_EPILOG = (
    "Exit codes: 0 completed, idle or detached; 1 failed, stopped, or a check that failed; "
    "2 usage, or refused; 3 waiting or paused; 130 left by a second Ctrl-C."
)

_PANELS = {
    "Run sessions": (run, submit, resume, message, stop, fork, workflow),
    "Look at sessions": (session_list, runs, show, tail, export),
    "Decide what agents may do": (pending, approve, policy),
    "Watch costs and failures": (costs, budget, breakers),
    "Verify the log": (audit, replay, rerun),
    "Keep cueline running": (up, down, status, scale, fleet),
    "Set up": (init, doctor, settings, providers, keys, log),
}
"""The commands by what one wants to do, in the order in which help lists them."""


class _PanelledCommands(Commands):
    """The commands, with a help that groups them."""

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer passes it
        """Write a section for each panel."""
        widest = max(map(len, self.commands))
        for panel in _PANELS:
            rows = [
                (name.ljust(widest), command.get_short_help_str(formatter.width - 6 - widest))
                for name, command in self.commands.items()
                if getattr(command, "rich_help_panel", None) == panel
            ]
            with formatter.section(panel):
                formatter.write_dl(rows)


app = typer.Typer(
    cls=_PanelledCommands,
    epilog=_EPILOG,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)

for panel, modules in _PANELS.items():
    for each in modules:
        each.register(app)
    for command in app.registered_commands:
        command.rich_help_panel = command.rich_help_panel or panel
    for group in app.registered_groups:
        group.rich_help_panel = group.rich_help_panel or panel


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    """Say which cueline this is, and end."""
    if asked:
        from importlib.metadata import version

        typer.echo(f"cueline {version('cueline')}")
        raise typer.Exit


@app.callback(help=_HELP)
def root(
    *,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config",
            envvar="CUELINE_CONFIG",
            metavar="FILE",
            help="The file of settings, instead of the nearest cueline.toml.",
        ),
    ] = None,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version, and end."
        ),
    ] = False,
) -> None:
    """Take what belongs to no command; of the settings, `outside` takes care."""


def main() -> None:
    """Run the command that was typed."""
    settle_streams()
    app(prog_name="cueline")
