"""Whether this process may open more files."""

import errno
import os
import resource

SPARE = 4
"""SQLite opens so many for one log; where fewer are left, that is what it fails of."""
_RAN_OUT = (errno.EMFILE, errno.ENFILE)


def ran_out(error: BaseException | None) -> bool:
    """Whether *error*, or what led to it, is that no more files may be open."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _RAN_OUT:
            return True
        error = error.__cause__ or error.__context__
    return False


def are_spent() -> bool:
    """Whether hardly any file may be opened now; SQLite does not say why it could not."""
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(SPARE))
    except OSError as error:
        return error.errno in _RAN_OUT
    finally:
        for each in opened:
            os.close(each)
    return False


def limit_reached() -> str:
    """Return what is said of it: the limit, and the command that raises it."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return (
        f"no more files can be opened: this process may have {limit} (`ulimit -n`); "
        "allow more with `ulimit -n 1024`, then try again"
    )
