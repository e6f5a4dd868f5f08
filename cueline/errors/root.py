"""What every error of cueline is."""

from typing import ClassVar


class CuelineError(Exception):
    """The root: catch it to catch everything cueline raises on purpose."""

    retryable: ClassVar[bool] = False
