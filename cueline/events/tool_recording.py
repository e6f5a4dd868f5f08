"""What the tools of an earlier session returned; in a rerun it answers instead of them."""

from operator import not_

from pydantic import Field, JsonValue

from cueline.events.part import Part


class RecordedResult(Part):
    """The result of a call in an earlier session."""

    effect: str
    arguments: dict[str, JsonValue]
    """As the model requested them."""
    text: str
    """The text for the model."""
    failed: bool = Field(default=False, exclude_if=not_)
    media_type: str = Field(default="", exclude_if=not_)
    """Of its image; empty if it has none."""
    image: str = Field(default="", exclude_if=not_)
    """The image in base64."""


class ToolRecording(Part):
    """The results of a tool in an earlier session, which answer its calls instead of it."""

    results: tuple[RecordedResult, ...] = ()
    run_others: bool = Field(default=False, exclude_if=not_)
    """Whether calls without a recorded result run; otherwise they fail as `not_recorded`."""

    def result_of(self, effect: str, arguments: dict[str, JsonValue]) -> RecordedResult | None:
        """Return the result of that effect or, if it had other *arguments*, of an equal call."""
        equal = [each for each in self.results if each.arguments == arguments]
        return next((each for each in equal if each.effect == effect), next(iter(equal), None))
