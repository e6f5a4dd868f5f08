"""The text of a turn, for cueline and for its peers: 1,000 characters that a person can read."""

SAID, ASKED, ANSWERED = 500, 100, 400
"""The bytes of the model's text, of the call's arguments and of the tool's result."""
TEXT = SAID + ASKED + ANSWERED
_WORDS = "the log is the truth and everything else is a fold of it "


def text(turn: int, size: int) -> str:
    """Return *size* characters that differ from those of other turns."""
    return f"{turn:06} {_WORDS * (size // len(_WORDS) + 1)}"[:size]
