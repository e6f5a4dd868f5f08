"""Detects that no more files can be opened, and says what to do."""

import errno
import os
import resource

SPARE = 4
"""SQLite opens so many files for one log; with fewer left, it fails."""
USUAL = 1024
"""A sufficient limit; with a lower one, the message advises this."""
_ALL_OPEN = (
    "no more files can be opened: all processes of this machine together have as many "
    "as it allows; end what holds them, then try again"
)
_NO_MORE = (
    "which is its hard limit; root can raise that: `nofile` in /etc/security/limits.conf, "
    "`LimitNOFILE` of a service, `--ulimit nofile` of a container"
)


def shortage_of(error: BaseException | None) -> str | None:
    """Return what to do if *error* or its cause is the limit of open files; else None."""
    while error is not None:
        if isinstance(error, OSError) and (said := _said_of(error)) is not None:
            return said
        error = error.__cause__ or error.__context__
    return None


def shortage() -> str | None:
    """Return what to do if hardly any file can be opened now; else None.

    SQLite does not say why it could not open one.
    """
    opened: list[int] = []
    try:
        opened.extend(os.open(os.devnull, os.O_RDONLY) for _ in range(SPARE))
    except OSError as error:
        return _said_of(error)
    finally:
        for each in opened:
            os.close(each)
    return None


def _said_of(error: OSError) -> str | None:
    if error.errno == errno.ENFILE:
        return _ALL_OPEN  # even if this process may open more
    if error.errno != errno.EMFILE:
        return None
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    said = f"no more files can be opened: this process may have {limit} (`ulimit -n`)"
    if limit == most:
        return f"{said}, {_NO_MORE}"
    advised = max(USUAL, 2 * limit)
    # A shell can raise its limit up to the hard limit only.
    advised = advised if most == resource.RLIM_INFINITY else min(advised, most)
    return f"{said}; allow more with `ulimit -n {advised}`, then try again"
