"""The option that goes on with tools that have changed since they were recorded."""

from typing import Annotated

import typer

ACCEPT = "--accept-changed-tools"
AcceptOption = Annotated[
    bool,
    typer.Option(
        ACCEPT, help="Go on with its tools as they are now, where they have changed since."
    ),
]
