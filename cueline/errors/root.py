"""The base class of all errors of cueline."""

from inspect import get_annotations
from typing import ClassVar, dataclass_transform


@dataclass_transform()
class CuelineError(Exception):
    """The base class: catch it to catch all errors that cueline raises on purpose.

    The annotations of a class are the arguments that it takes, and its attributes.
    """

    retryable: ClassVar[bool] = False
    text: ClassVar[str] = ""
    """The message, with its attributes in braces."""
    names: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(cls) -> None:
        cls.names = (*cls.names, *get_annotations(cls))

    def __init__(self, *values: object, **named: object) -> None:
        given = dict(zip(self.names, values, strict=False)) | named
        every = {name: given[name] if name in given else getattr(self, name) for name in self.names}
        # All of them: Ray pickles an error, which then is made of its `args`.
        super().__init__(*(every.values() if self.names else values))
        vars(self).update(every)

    def __str__(self) -> str:
        return self.text.format(**vars(self)) if self.text else super().__str__()

    def to_json(self) -> dict[str, object]:
        """Return its name, message, whether to try again, and its values."""
        values = {name: each for name, each in vars(self).items() if isinstance(each, str | int)}
        return {
            "error": type(self).__name__,
            "message": str(self),
            "retryable": self.retryable,
            **values,
        }
