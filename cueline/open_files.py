"""Whether more files may be opened, and what to say where they may not."""

import errno
import os
import resource

SPARE = 4
"""SQLite opens so many for one log; where fewer are left, that is what it fails of."""
USUAL = 1024
"""So many are enough for most; who has fewer is told to allow these."""
_ALL_OPEN = (
    "no more files can be opened: all processes of this machine together have as many "
    "as it allows; end what holds them, then try again"
)
_NO_MORE = (
    "which is its hard limit; root can raise that: `nofile` in /etc/security/limits.conf, "
    "`LimitNOFILE` of a service, `--ulimit nofile` of a container"
)


def shortage_of(error: BaseException | None) -> str | None:
    """Return what to say where *error*, or what led to it, is that no more files may be open."""
    while error is not None:
        if isinstance(error, OSError) and (said := _said_of(error)) is not None:
            return said
        error = error.__cause__ or error.__context__
    return None


def shortage() -> str | None:
    """Return what to say where hardly any file may be opened now.

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
        return _ALL_OPEN  # whatever this process may have
    if error.errno != errno.EMFILE:
        return None
    limit, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    said = f"no more files can be opened: this process may have {limit} (`ulimit -n`)"
    if limit == most:
        return f"{said}, {_NO_MORE}"
    advised = max(USUAL, 2 * limit)
    # A hard limit is as much as a shell may allow itself.
    advised = advised if most == resource.RLIM_INFINITY else min(advised, most)
    return f"{said}; allow more with `ulimit -n {advised}`, then try again"
