"""The questions to a person, one after another, with the time left to answer.

The prompt is a client of the log like any other: what was answered goes into
the session's inbox, as `cueline approve` puts it there.
"""

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cueline.console.entry import ENTER, ERASERS, Entry, Keys
from cueline.console.keyboard import Keyboard
from cueline.console.question import KEYS, Question, box, objection, time_left, wording
from cueline.console.screen import Screen
from cueline.console.telling import Line
from cueline.console.text import visible
from cueline.events.inbox import Resolution

Verdict = Literal["grant", "deny"]
_TICK_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Answered:
    """What a person said at the prompt."""

    question: Question
    verdict: Verdict
    always: bool = False
    resolution: Resolution | None = None
    """Of a call in doubt."""
    result: str = ""
    """What it gave, where they say that it happened."""


Answer = Callable[[Answered], None]
Edit = Callable[[Question, str], None]
"""Looks at a change of the arguments; whoever does hands the question to `change`, or says
on the screen why not."""


class Prompts:
    """The questions that wait, asked one after another beneath what is shown.

    Between them the keyboard is for the *entry*, where it is open; a message
    that was begun when a question came is finished first.
    """

    def __init__(
        self,
        screen: Screen,
        now: Callable[[], datetime],
        answer: Answer,
        entry: Entry,
        edit: Edit,
    ) -> None:
        self._screen = screen
        self._now = now
        self._answer = answer
        self._entry = entry
        self._edit = edit
        self._editing = False
        self._keys = Keys()
        self._waiting: dict[str, Question] = {}
        self._drawn: str | None = None
        self._typed = ""
        self._keyboard: Keyboard | None = None

    def ask(self, question: Question) -> None:
        """Add *question*; it is shown when those before it are answered."""
        self._waiting[question.approval] = question
        self._refresh()

    def change(self, question: Question) -> None:
        """Ask *question* with the arguments that it has now, if a change is still waited for."""
        current = self._current
        if self._editing and current is not None and current.approval == question.approval:
            self._editing = False
            self._waiting[question.approval] = question
            self._screen.draw(box(question))
            self._refresh()

    def withdraw(self, approval: str) -> None:
        """Forget a question: it was answered, here or elsewhere, or it expired."""
        if self._waiting.pop(approval, None) is not None:
            self._refresh()

    @contextmanager
    def listening(self) -> Iterator[None]:
        """Read keys as they are pressed, without holding anything up."""
        keyboard = self._keyboard = Keyboard(self._heard)
        self._tick(asyncio.get_running_loop(), keyboard)
        try:
            yield
        finally:
            self._ticking.cancel()
            self._waiting.clear()
            self._screen.keep_last("")
            keyboard.leave()

    def restore(self) -> None:
        """Give the keyboard back as it was."""
        if self._keyboard is not None:
            self._keyboard.restore()

    def _tick(self, loop: asyncio.AbstractEventLoop, keyboard: Keyboard) -> None:
        keyboard.take()
        self._refresh()
        self._ticking = loop.call_later(_TICK_SECONDS, self._tick, loop, keyboard)

    def _heard(self, sent: bytes) -> None:
        for key in self._keys.of(sent):
            self._press(key)
        self._refresh()

    def _press(self, key: str) -> None:
        if (entry := self._writing) is not None:
            entry.press(key)
            return
        question = self._current
        if question is None:
            return
        if key in ENTER:
            typed, self._typed = self._typed.strip(), ""
            if not self._editing:
                self._decide(question, typed)
            elif typed:
                self._edit(question, typed)
            else:
                self._editing = False
        elif key in ERASERS:
            self._typed = self._typed[:-1]
        elif key.isprintable():
            self._typed += key

    def _decide(self, question: Question, typed: str) -> None:
        if question.resolutions:
            self._resolve(question, typed)
        else:
            self._judge(question, typed.lower())

    def _resolve(self, question: Question, typed: str) -> None:
        """Take what is said of a call in doubt: no answer is harmless, so none is guessed."""
        key, _, result = typed.partition(" ")
        resolution = KEYS.get(key.lower())
        denies = resolution == "do_not_run"
        if question.barred and not denies:
            self._screen.show([Line("bad", objection(question))])
        elif resolution is None or (result and resolution != "happened"):
            keys = f"{', '.join(list(KEYS)[:-1])} or {list(KEYS)[-1]}"
            self._screen.show([Line("bad", f"please answer {keys}: only you can find out")])
        else:
            verdict: Verdict = "deny" if denies else "grant"
            said = Answered(question, verdict, resolution=resolution, result=result.strip())
            self._give(said, typed)

    def _judge(self, question: Question, typed: str) -> None:
        yes, no = typed in ("y", "yes"), typed in ("n", "no")
        if question.barred and not no:
            # Who may only say no shall not do so by a slip, for those who may say yes.
            self._screen.show([Line("bad", objection(question))])
            return
        edit, always = typed in ("e", "edit"), typed in ("a", "always")
        if (edit or always) and question.fixed:
            self._screen.show([Line("bad", question.fixed)])
            return
        if edit:
            self._editing = True
            return
        self._give(Answered(question, "grant" if yes or always else "deny", always), typed)

    def _give(self, answered: Answered, typed: str) -> None:
        """Hand over an answer, and show it."""
        question = answered.question
        del self._waiting[question.approval]
        self._screen.keep_last("")
        shown = f"{wording(question)} {visible(typed) or '(no answer)'}"
        self._screen.show([Line("dim", shown)])
        self._answer(answered)

    @property
    def _current(self) -> Question | None:
        return next(iter(self._waiting.values()), None)

    @property
    def _writing(self) -> Entry | None:
        """The entry, while keys are for it."""
        entry = self._entry
        free = entry.begun or self._current is None
        return entry if entry.open and free else None

    def _refresh(self) -> None:
        question = self._current
        entry = self._writing
        if question is None:
            self._drawn = None
            self._screen.keep_last(entry.line if entry else "")
            return
        if self._drawn != question.approval:
            self._drawn = question.approval
            self._typed, self._editing = "", False
            self._screen.draw(box(question))
            if entry is None and self._keyboard is not None:
                # What was typed before the question could be seen is no answer to it.
                self._keyboard.forget()
        if entry is not None:
            self._screen.keep_last(entry.line)
            return
        self._screen.keep_last(f"{self._asks(question)} {visible(self._typed)}")

    def _asks(self, question: Question) -> str:
        """Return what stands in front of what is typed."""
        if self._editing:
            return "Change (NAME=VALUE, or all of it in JSON; Enter: leave it)"
        until = question.auto_at or question.deadline_at
        left = time_left((until - self._now()).total_seconds())
        ends = f"granted in {left} unless you say no" if question.auto_at else f"timeout: {left}"
        others = len(self._waiting) - 1
        return f"{wording(question)} ({ends}){f' ({others} more after this)' if others else ''}"
