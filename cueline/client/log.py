"""Makes logs, and copies them."""

from collections.abc import Sequence

from cueline.events.log_url import LogName
from cueline.stores.backend import backend_of


def migrate_log(log: LogName, *, writers: Sequence[str] = (), readers: Sequence[str] = ()) -> bool:
    """See `LogBackend.migrate`."""
    return backend_of(log).migrate(writers, readers)
