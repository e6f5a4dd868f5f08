"""What every error of cueline is."""

from typing import ClassVar


class CuelineError(Exception):
    """The root: catch it to catch everything cueline raises on purpose."""

    retryable: ClassVar[bool] = False

    def to_json(self) -> dict[str, object]:
        """Return its name, message, whether to try again, and the values that it names."""
        values = {name: each for name, each in vars(self).items() if isinstance(each, str | int)}
        return {
            "error": type(self).__name__,
            "message": str(self),
            "retryable": self.retryable,
            **values,
        }
