"""Opens a log for questions."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from cueline.client.open_read_models import Notice, print_notice
from cueline.client.reader import Reader
from cueline.config.config_file import DEFAULT_LOG
from cueline.events.log_url import LogName
from cueline.runtime.open_log import open_log


@asynccontextmanager
async def open_reader(
    log: LogName = DEFAULT_LOG, *, must_exist: bool = True, notice: Notice = print_notice
) -> AsyncIterator[Reader]:
    """Open the log with this URL or path for reading; the log is not changed.

    Args:
        log: its URL or path.
        must_exist: False: a missing log counts as empty.
        notice: called with information for the user, such as why reading takes long.

    Raises:
        ConfigError: the URL has an unknown scheme.
        LogUnavailableError: the log does not exist, or cannot be read.
        LogFormatError: another format wrote it.
    """
    async with open_log(log, must_exist=must_exist, read_only=True, notice=notice) as opened:
        yield Reader(opened, notice)
