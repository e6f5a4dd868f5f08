"""The base class of all errors of cueline."""

from typing import ClassVar


class CuelineError(Exception):
    """The base class: catch it to catch all errors that cueline raises on purpose."""

    retryable: ClassVar[bool] = False

    def to_json(self) -> dict[str, object]:
        """Return its name, message, whether to try again, and its values."""
        values = {name: each for name, each in vars(self).items() if isinstance(each, str | int)}
        return {
            "error": type(self).__name__,
            "message": str(self),
            "retryable": self.retryable,
            **values,
        }
