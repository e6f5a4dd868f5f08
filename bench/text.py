"""The text of a turn, for cueline and for its peers: 1,000 characters that a person would read."""

SAID, ASKED, ANSWERED = 500, 100, 400
"""By the model; of the tool; by the tool. In characters, which are a byte each."""
TEXT = SAID + ASKED + ANSWERED
_WORDS = "the log is the truth and everything else is a fold of it "


def text(turn: int, size: int) -> str:
    """Return *size* characters that no other turn has."""
    return f"{turn:06} {_WORDS * (size // len(_WORDS) + 1)}"[:size]
