"""Asks a person questions at the prompt, one after another, with the time left to answer.

The prompt is an ordinary client of the log: answers go into the session's inbox, like
those of `cueline approve`.
"""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cueline.console.entry import LABEL, Entry
from cueline.console.question import (
    KEYS,
    Question,
    box,
    explanation,
    objection,
    time_left,
    whole,
    wording,
)
from cueline.console.screen import Screen
from cueline.console.text import Line, visible
from cueline.events.inbox import Resolution

Verdict = Literal["grant", "deny"]
_UNSEEN = "the box shows a part of what would run: type d to see all of it, then answer"
_CHANGE = "Change (NAME=VALUE, or all of it in JSON; Enter: leave it)"


@dataclass(frozen=True, slots=True)
class Answered:
    """A person's answer at the prompt."""

    question: Question
    verdict: Verdict
    always: bool = False
    note: str = ""
    """The reason of a denial."""
    resolution: Resolution | None = None
    """The resolution of a call in doubt."""
    result: str = ""
    """The result of the call, if it happened; or what a person typed as the answer."""


Answer = Callable[[Answered], object]
Edit = Callable[[Question, str], object]
"""Checks a change of the arguments; calls `change` with the new question, or shows the error."""


class Prompts:
    """The open questions, asked one after another at the bottom of the screen.

    Input that answers no question goes to the *entry*, if it is open. If a person has begun a
    message when a question comes, the question is asked after the message.
    """

    def __init__(
        self, screen: Screen, now: Callable[[], datetime], answer: Answer, entry: Entry, edit: Edit
    ) -> None:
        self.typed = ""
        """The typed text that is not entered yet."""
        self.on_other: Callable[[], None] = lambda: None
        """Called when the next input is for another question."""
        self._screen = screen
        self.now = now
        self._answer = answer
        self._entry = entry
        self._edit = edit
        self._editing = False
        self._waiting: dict[str, Question] = {}
        self._asked: str | None = None
        """The approval that the input answers; None: the input is a message."""
        self._drawn: str | None = None
        self._shown_whole: Question | None = None

    @property
    def talks(self) -> bool:
        """Whether the input is a message, and not the answer to a question."""
        return self._asked is None and self._entry.open

    @property
    def label(self) -> str:
        """The text before the input, such as the question; empty if no input is possible."""
        question = self._waiting.get(self._asked or "")
        if question is None:
            return LABEL if self._entry.open else ""
        if self._editing:
            return _CHANGE
        until = question.auto_at or question.deadline_at
        left = time_left((until - self.now()).total_seconds())
        ends = f"granted in {left} unless you say no" if question.auto_at else f"timeout: {left}"
        others = len(self._waiting) - 1
        return f"{wording(question)} ({ends}){f' ({others} more after this)' if others else ''}"

    def ask(self, question: Question) -> None:
        """Add *question*, which is shown after the earlier ones are answered."""
        self._waiting[question.approval] = question
        self.refresh()

    def change(self, question: Question) -> None:
        """Ask *question* with its changed arguments, if its question still waits for the change."""
        if self._editing and self._asked == question.approval:
            self._editing = False
            self._waiting[question.approval] = question
            self._screen.draw(box(question))

    def withdraw(self, approval: str) -> None:
        """Remove a question that was answered, here or elsewhere, or has expired."""
        if self._waiting.pop(approval, None) is not None:
            self.refresh()

    def end(self) -> None:
        """End the entry of messages."""
        if self.talks:
            self._entry.run("/quit")

    def refresh(self) -> None:
        """Ask the first open question, once no other input is being typed."""
        question = next(iter(self._waiting.values()), None)
        asks = None if question is None else question.approval
        if asks != self._asked and not (self.talks and self.typed):
            # Before the question is shown: keys that are typed from then on count.
            self._asked, self.typed, self._editing = asks, "", False
            self.on_other()
        if question is not None and self._drawn != asks:
            self._screen.draw(box(question))
        self._drawn = asks

    def enter(self, typed: str) -> bool:
        """Handle an entered line; return False if the person has to correct the line."""
        question = self._waiting.get(self._asked or "")
        if question is not None:
            self._take(question, typed.strip())
        done = question is not None or not self._entry.open or self._entry.send(typed)
        if done:
            self.typed = ""
            self.refresh()
        return done

    def _take(self, question: Question, typed: str) -> None:
        if self._editing and typed:
            self._edit(question, typed)
        elif self._editing:
            self._editing = False
        elif typed == "?":
            self._screen.show(Line("dim", line) for line in explanation(question))
        elif typed in ("d", "details"):
            self._screen.draw(whole(question))
            self._shown_whole = question
        elif question.requests:
            self._reply(question, typed)
        elif not self._entry.run(typed):
            key, _, more = typed.partition(" ")
            decide = self._resolve if question.resolutions else self._judge
            decide(question, key.lower(), more.strip(), typed)

    def _reply(self, question: Question, typed: str) -> None:
        """Read the answer to what a call asks for: any text that is no command."""
        command, _, more = typed.partition(" ")
        if command == "/deny":
            self._give(Answered(question, "deny", note=more.strip()), typed)
        elif question.barred:
            self._object(objection(question))
        elif not typed:
            self._object("type an answer, or /deny")
        elif not self._entry.run(typed):
            self._give(Answered(question, "grant", result=typed), typed)

    def _resolve(self, question: Question, key: str, more: str, typed: str) -> None:
        """Read the answer about a call in doubt, which is never guessed."""
        resolution = KEYS.get(key)
        denies = resolution == "do_not_run"
        if question.barred and not denies:
            self._object(objection(question))
        elif resolution is None or (more and resolution == "run_again"):
            self._object("please answer h, r or n: only you can find out; ? tells what each does")
        elif resolution == "run_again" and self._is_unseen(question):
            self._object(_UNSEEN)
        else:
            said = Answered(
                question,
                "deny" if denies else "grant",
                resolution=resolution,
                note=more if denies else "",
                result="" if denies else more,
            )
            self._give(said, typed)

    def _judge(self, question: Question, key: str, more: str, typed: str) -> None:
        """Read the answer about a call; only an exact answer counts."""
        no, extends = key in ("n", "no"), key in ("a", "always", "e", "edit")
        if question.barred and not no:
            # A person who may only deny must not deny by a slip a call that others may grant.
            self._object(objection(question))
        elif extends and not more and question.fixed:
            self._object(question.fixed)
        elif no or not typed:
            self._give(Answered(question, "deny", note=more), typed)
        elif more or not (extends or key in ("y", "yes")):
            self._object(f"{typed} is no answer: y, n, {'' if question.fixed else 'a, e, '}d or ?")
        elif key in ("e", "edit"):
            self._editing = True
        elif self._is_unseen(question):
            self._object(_UNSEEN)
        else:
            self._give(Answered(question, "grant", key in ("a", "always")), typed)

    def _is_unseen(self, question: Question) -> bool:
        """Whether a part of the call has not been shown yet."""
        return question.is_cut and question is not self._shown_whole

    def _object(self, why: str) -> None:
        self._screen.show([Line("bad", why)])

    def _give(self, answered: Answered, typed: str) -> None:
        """Send an answer to the session, and show it."""
        question = answered.question
        del self._waiting[question.approval]
        shown = f"{wording(question)} {visible(typed) or '(no answer)'}"
        self._screen.show([Line("dim", shown)])
        self._answer(answered)
