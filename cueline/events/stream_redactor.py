"""Removes secrets from a text that comes in pieces.

Theory of operation: a secret may be split over pieces. So the redactor compares each
new character with all forms of all secrets at the same time, and holds back the end of
the text if it may be the beginning of a form. The forms are squeezed as in
`events.spelling`: characters that may be inside a form are skipped.
"""

from typing import NamedTuple

from cueline.events.sanitize import CUT, Redactor, fit
from cueline.events.spelling import SQUEEZED_OUT

LONGEST_HELD = 64 * 1024
"""The most characters that are held back; with more, the rest of the text is dropped."""


class _Match(NamedTuple):
    """A part of the text that is the beginning of a squeezed form."""

    needle: str
    matched: int
    start: int


class StreamRedactor:
    """Takes one text piece by piece, and returns it without secrets as early as possible."""

    __slots__ = (
        "_begun",
        "_found",
        "_held",
        "_is_safe",
        "_lead",
        "_leads",
        "_needles",
        "_redactor",
    )

    def __init__(self, redactor: Redactor) -> None:
        self._redactor = redactor
        self._needles: dict[str, list[str]] = {}
        """The squeezed forms, by their first character."""
        self._leads: set[str] = set()
        """The skipped characters with which a form begins."""
        self._is_safe = True
        for each in redactor.spellings:
            self._is_safe = self._is_safe and bool(each.needle)
            self._leads.update(letter for letter in each.text[0] if letter in SQUEEZED_OUT)
            same = self._needles.setdefault(each.needle[:1], [])
            if each.needle not in same:
                same.append(each.needle)
        self._held = ""
        self._begun: list[_Match] = []
        self._found: list[tuple[int, int]] = []
        """The parts of the held text that may be a whole form."""
        self._lead: int | None = None
        """The first of the skipped characters at the end with which a form may begin."""

    def feed(self, piece: str) -> str:
        """Return the text that can be shown after *piece*; it may be empty."""
        # The text beside a cut mark can be checked only when all of it is there.
        self._is_safe = self._is_safe and CUT not in piece
        if not self._is_safe:
            return ""
        if not self._needles:
            return fit(piece)
        first = len(self._held)
        self._held += fit(piece)
        for at in range(first, len(self._held)):
            self._compare(at)
        return self._release(self._open_end())

    def end(self) -> str:
        """Return the rest of the text, without secrets, after the last piece."""
        return self._release(len(self._held)) if self._is_safe else ""

    def _compare(self, at: int) -> None:
        letter = self._held[at]
        if letter in SQUEEZED_OUT:
            if self._lead is None and letter in self._leads:
                self._lead = at
            return
        begun = [m for m in self._begun if m.needle[m.matched] == letter]
        start = at if self._lead is None else self._lead
        begun += [_Match(needle, 0, start) for needle in self._needles.get(letter, ())]
        self._begun = []
        for needle, matched, start in begun:
            if matched + 1 == len(needle):
                self._found.append((start, at + 1))
            else:
                self._begun.append(_Match(needle, matched + 1, start))
        self._lead = None

    def _open_end(self) -> int:
        """Return the index in the held text from which the text may be a part of a secret."""
        end = len(self._held) if self._lead is None else self._lead
        end = min([end, *(match.start for match in self._begun)])
        if len(self._held) - end > LONGEST_HELD:
            self._is_safe = False
            return 0
        # A form that lies across the border is held back, too.
        while crossing := [start for start, stop in self._found if start < end < stop]:
            end = min(crossing)
        return end

    def _release(self, end: int) -> str:
        part, self._held = self._held[:end], self._held[end:]
        if not part:
            return ""
        suspicious = any(start < end for start, _ in self._found)
        self._begun = [m._replace(start=m.start - end) for m in self._begun]
        self._found = [(start - end, stop - end) for start, stop in self._found if stop > end]
        self._lead = None if self._lead is None or self._lead < end else self._lead - end
        return self._redactor.redact(part)[0] if suspicious else part
