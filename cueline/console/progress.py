"""Shows the progress of a start that takes more than a second."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(
    what: str, *, plain: bool = False, instead: Callable[[], None] = lambda: None
) -> Iterator[Callable[[], None]]:
    """Show on a terminal's stderr that *what* is in progress, and for how long.

    The line disappears at the end of the block, or when the yielded function is called.
    Without a terminal, *instead* is called once.
    """
    if plain or not sys.stderr.isatty():
        instead()
        yield lambda: None
        return
    from rich.console import Console  # noqa: PLC0415 - `cueline up` in a script needs none of it
    from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn  # noqa: PLC0415

    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    shown = Progress(*columns, console=Console(stderr=True), transient=True)
    shown.add_task(what, total=None)
    with shown:
        yield shown.stop
