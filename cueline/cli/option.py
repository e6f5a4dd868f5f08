"""The options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

from cueline.cli.naming import complete_session

DEFAULT_LOG = Path(".cueline/log.db")

LogOption = Annotated[
    Path, typer.Option("--log", envvar="CUELINE_LOG", help="The log's file.", metavar="FILE")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print JSON for programs.")]
SessionArgument = Annotated[
    str,
    typer.Argument(
        help="The session's id, or the beginning of it.",
        metavar="SESSION",
        autocompletion=complete_session,
        show_default=False,
    ),
]
InlineOption = Annotated[
    bool, typer.Option("--inline", help="Drive it in this process, without Ray.")
]
DetachOption = Annotated[
    bool,
    typer.Option("--detach", help="Return the id at once; a running `cueline up` takes it."),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        envvar="RAY_ADDRESS",
        metavar="HOST:PORT",
        help="The Ray cluster to run on, where no `cueline up` drives this log; else a new one.",
    ),
]
