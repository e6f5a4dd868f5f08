"""The line at which a person says more to a session that stays open."""

import codecs
import re
from collections.abc import Callable

from cueline.console.screen import Screen
from cueline.console.telling import Line
from cueline.console.text import visible
from cueline.events.inbox import Lane

Say = Callable[[Lane, str], None]
ENTER = ("\r", "\n")
ERASERS = ("\x7f", "\b")
HOW = "type a message and Enter; /steer or /followup in front choose when it counts; Ctrl-D ends"
_END = "\x04"
_ERASE_LINE = "\x15"
_ERASE_WORD = "\x17"
_PROMPT = "> "
_LANES: dict[str, Lane] = {"/note": "note", "/steer": "steer", "/followup": "followup"}
_COMMAND = re.compile(r"/[a-z]+")
_SEQUENCE = re.compile(r"\x1b(?:\[[0-9;?]*[ -/]*[@-~]|O.|.)?")
"""What a key that is no letter sends: an arrow, Delete, Alt and a letter."""


class Keys:
    """Turns what a terminal sends into keys; a letter may come in two halves."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors="ignore")

    def of(self, sent: bytes) -> str:
        """Return the keys that were pressed, without those that have no meaning here."""
        return _SEQUENCE.sub("", self._decoder.decode(sent))


class Entry:
    """What a person is typing; it is offered once the session stays open for it."""

    def __init__(self, screen: Screen, say: Say, end: Callable[[], None]) -> None:
        self.open = False
        """Whether more can be said."""
        self._screen = screen
        self._say = say
        self._end = end
        self._typed = ""

    @property
    def begun(self) -> bool:
        """Whether a message was begun, and not sent."""
        return bool(self._typed)

    @property
    def line(self) -> str:
        """How it looks: the end of what was typed, on one row."""
        if not self.open:
            return ""
        typed = visible(self._typed)
        room = self._screen.console.width - len(_PROMPT) - 2
        return _PROMPT + (typed if len(typed) <= room else f"…{typed[1 - room :]}")

    def offer(self) -> None:
        """Let messages be typed, and say how."""
        if not self.open:
            self.open = True
            self._screen.show([Line("dim", HOW)])

    def press(self, key: str) -> None:
        """Take one key."""
        if key in ENTER:
            self._send()
        elif key == _END and not self._typed:
            self.open = False
            self._end()
        elif key in ERASERS:
            self._typed = self._typed[:-1]
        elif key == _ERASE_LINE:
            self._typed = ""
        elif key == _ERASE_WORD:
            left = self._typed.rstrip()
            self._typed = left[: left.rfind(" ") + 1]
        elif key.isprintable():
            self._typed += key

    def _send(self) -> None:
        word, _, rest = self._typed.partition(" ")
        if _COMMAND.fullmatch(word) and word not in _LANES:
            known = ", ".join(_LANES)
            told = f"{word} is none of {known}; put a blank in front to say it as it is"
            self._screen.show([Line("bad", told)])
            return
        lane = _LANES.get(word)
        text = (self._typed if lane is None else rest).strip()
        self._typed = ""
        if text:
            self._say(lane or "note", text)
