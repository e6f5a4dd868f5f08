"""What takes more than a second, and happens before anything can be shown."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def progress(
    what: str, *, plain: bool = False, instead: Callable[[], None] = lambda: None
) -> Iterator[Callable[[], None]]:
    """Show on stderr, where that is a terminal, that *what* goes on, and for how long.

    It disappears at the end of the block, or when what is yielded is called.
    Elsewhere *instead* is called once.
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
