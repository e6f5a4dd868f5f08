"""The command line: collects the commands of the other modules of this room.

A command's module is imported when the command is used, so that `--help` and `list` are quick.
"""

import os
from functools import cached_property
from importlib import import_module
from itertools import chain
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperCommand
from typer.main import get_group

from cueline.cli.failure import Commands
from cueline.cli.settings_context import defaults_of, tell_left_out
from cueline.cli.terminal import settle_streams
from cueline.config.config_file import LOG_LEVEL


class LazyCommand(TyperCommand):
    """A command with its name and short help; it imports its module when it is called."""

    def __init__(self, name: str, short_help: str, place: str = "") -> None:
        """Set the *place* of the function or group: `MODULE:NAME`, by default `NAME:NAME`."""
        super().__init__(name, short_help=short_help)
        self.place = place or f"{name}:{name}"

    @cached_property
    def loaded(self) -> Any:
        """The imported command or group."""
        module, _, attribute = self.place.partition(":")
        found = getattr(import_module(f"cueline.cli.{module}"), attribute)
        around = typer.Typer(rich_markup_mode=None)
        if isinstance(found, typer.Typer):
            around.add_typer(found, name=self.name)
        else:
            around.command(self.name)(found)
        return get_group(around).commands[str(self.name)]

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        """Import the command, and parse the words after its name."""
        tell_left_out(self.name, parent)
        defaults = defaults_of(self.loaded, parent)
        return self.loaded.make_context(info_name, args, parent, default_map=defaults, **extra)


_EPILOG = (
    "Exit codes: 0 completed, idle or detached; 1 failed, stopped, or a check that failed; "
    "2 usage, or refused; 3 waiting or paused; 130 left by a second Ctrl-C."
)

_PANELS = {
    "Run sessions": (
        LazyCommand("run", "Start a session, and watch it."),
        LazyCommand("submit", "Start a run of a blueprint.", "runs:submit"),
        LazyCommand("retry", "Start an ended run again.", "runs:retry"),
        LazyCommand("resume", "Continue a session, and watch it."),
        LazyCommand("send", "Send a message to a session.", "message:send"),
        LazyCommand("pause", "Ask a session to pause.", "message:pause"),
        LazyCommand("stop", "End a session.", "message:stop"),
        LazyCommand("fork", "Start a session from another's past.", "resume:fork"),
        LazyCommand("undo", "Put back the files that a session changed.", "resume:undo"),
        LazyCommand("workflow", "Check and show workflows.", "workflow:group"),
    ),
    "Look at sessions": (
        LazyCommand("list", "List the sessions of the log.", "session_list:list_"),
        LazyCommand("runs", "List the runs of blueprints."),
        LazyCommand("blueprints", "List the blueprints.", "runs:blueprints"),
        LazyCommand("runners", "List the registered runners.", "runs:runners"),
        LazyCommand("show", "Show one session."),
        LazyCommand("diff", "Compare two sessions."),
        LazyCommand("tail", "Print a session's events, also new ones."),
        LazyCommand("export", "Print a session as JSON.", "tail:export"),
    ),
    "Decide what agents may do": (
        LazyCommand("pending", "List the approvals that wait."),
        LazyCommand("approve", "Allow one call of a tool."),
        LazyCommand("deny", "Refuse one call of a tool.", "approve:deny"),
        LazyCommand("policy", "Check a policy; try it on recorded calls.", "policy:group"),
    ),
    "Watch costs and failures": (
        LazyCommand("costs", "Show costs by session, model or day."),
        LazyCommand("budget", "Show limits; raise them.", "budget:group"),
        LazyCommand("breakers", "List circuit breakers, and reset one.", "breakers:group"),
        LazyCommand("telemetry", "Export traces to OpenTelemetry.", "telemetry:group"),
    ),
    "Verify the log": (
        LazyCommand("replay", "Rebuild a session's state, and check it."),
        LazyCommand("rerun", "Run a recorded session again.", "resume:rerun"),
        LazyCommand("audit", "List events; check the chains.", "audit:group"),
        LazyCommand("erase", "Remove what sessions said.", "retention:erase"),
        LazyCommand("archive", "Move old sessions to files.", "retention:archive"),
        LazyCommand("cleanup", "Remove old sessions.", "retention:cleanup"),
    ),
    "Keep cueline running": (
        LazyCommand("up", "Keep cueline running for a log."),
        LazyCommand("down", "End the actors that `up` started."),
        LazyCommand("serve", "Serve a log by HTTP: its API, its pages, and MCP."),
        LazyCommand("runner", "Run calls of tools here, for a server.", "runner:group"),
        LazyCommand("acp", "Serve an editor: the Agent Client Protocol."),
        LazyCommand("open", "Open a page in the browser.", "open_page:open_page"),
        LazyCommand("tokens", "Issue and revoke tokens.", "tokens:group"),
        LazyCommand("status", "Show the processes of a log."),
        LazyCommand("scale", "Change the number of hosts and runners.", "fleet:scale"),
        LazyCommand("fleet", "Show hosts, runners and waiting work."),
        LazyCommand("sandboxes", "List sandboxes and waiting sessions."),
    ),
    "Set up": (
        LazyCommand("init", "Write an agent, its tool and its test."),
        LazyCommand("doctor", "Check this machine; show what to do."),
        LazyCommand("providers", "List providers, and their keys."),
        LazyCommand("tools", "List and check the tools of an agent."),
        LazyCommand("tool", "Call a tool by hand.", "tools:group"),
        LazyCommand("models", "List the models of a provider.", "providers:models"),
        LazyCommand("config", "Show the settings and their sources.", "settings:group"),
        LazyCommand("trust", "Trust a folder's settings."),
        LazyCommand("keys", "Store the keys of providers.", "providers:group"),
        LazyCommand("log", "Create, upgrade, copy or check a log.", "log:group"),
    ),
}
"""The commands by purpose, in the order of the help."""


class _PanelledCommands(Commands):
    """The commands, with a help that groups them."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        for each in chain.from_iterable(_PANELS.values()):
            self.add_command(each)

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002 - typer passes it
        """Write a section for each panel."""
        widest = max(map(len, self.commands))
        for panel, commands in _PANELS.items():
            rows = [
                (f"{each.name:{widest}}", each.get_short_help_str(formatter.width - 6 - widest))
                for each in commands
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


def _print_version(asked: bool) -> None:  # noqa: FBT001 - typer calls it so
    """Print the version, and exit."""
    if asked:
        from importlib.metadata import version

        typer.echo(f"cueline {version('cueline')}")
        raise typer.Exit


@app.callback()
def root(
    *,
    config: Annotated[  # noqa: ARG001 - commands read it from the context
        Path | None,
        typer.Option(
            "--config",
            envvar="CUELINE_CONFIG",
            metavar="FILE",
            help="The file of settings, instead of the project's cueline.toml.",
        ),
    ] = None,
    version: Annotated[  # noqa: ARG001 - its callback prints it
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version, and end."
        ),
    ] = False,
) -> None:
    """Run LLM agents that cannot be lost.

    Every turn and tool call is an event in a log before anything acts on it; to
    resume is to replay.

    \b
    Start a session and watch it:
      cueline run "Tidy the notes" --agent agent.toml --workspace notes
    List the sessions, and continue an interrupted one:
      cueline list
      cueline resume 7f3a
    """
    if os.environ.get(LOG_LEVEL):
        from cueline.runtime.log_lines import start_logging

        start_logging(os.environ)


def main() -> None:
    """Run the command that was typed."""
    settle_streams()
    app(prog_name="cueline")
