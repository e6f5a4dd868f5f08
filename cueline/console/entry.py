"""Reads the input to an open session: messages, and commands after a slash."""

import re
from collections.abc import Callable, Mapping

from cueline.console.screen import Screen
from cueline.console.text import Line
from cueline.events.inbox import Lane

Say = Callable[[Lane, str], None]
Command = Callable[[], None]
Switch = Callable[[str], None]
"""The callback for the name of another model."""
HOW = "type a message and Enter (Alt-Enter for a new line); /help tells more; Ctrl-D ends"
LABEL = ">"
_LANES: Mapping[str, Lane] = {"/note": "note", "/steer": "steer", "/followup": "followup"}
_HELP = {
    "/note TEXT": "counts with the next model call, as a line without a command does",
    "/steer TEXT": "counts as soon as possible: calls that have not started are skipped",
    "/followup TEXT": "counts when the session would otherwise be idle",
    "/cost": "what the session has used",
    "/model [PROVIDER/NAME]": "which model answers, or which answers from now on",
    "/pause": "pause, and leave, as Ctrl-C does",
    "/thinking": "hide the model's thoughts, or show them again",
    "/quit": "leave as soon as the session rests, as Ctrl-D does",
}
_COMMAND = re.compile(r"/[a-z]+")


class Entry:
    """Handles input lines that answer no question."""

    def __init__(
        self, screen: Screen, say: Say, commands: Mapping[str, Command], switch: Switch
    ) -> None:
        self.open = False
        """Whether messages can be sent."""
        self._screen = screen
        self._say = say
        self._commands = {"/help": self._help, **commands}
        self._switch = switch

    def offer(self) -> None:
        """Enable messages, and show the instructions."""
        if not self.open:
            self.open = True
            self._screen.show([Line("dim", HOW)])

    def run(self, typed: str) -> bool:
        """Run *typed* if it is a command without text; return whether it is such a command."""
        command = self._commands.get(typed.strip())
        if command is not None:
            command()
        return command is not None

    def send(self, typed: str) -> bool:
        """Send or run an entered line; return False if the person has to correct the line."""
        if self.run(typed):
            return True
        word, _, rest = typed.partition(" ")
        if word == "/model":
            self._switch(rest.strip())
            return True
        if _COMMAND.fullmatch(word) and word not in _LANES:
            known = ", ".join([*_LANES, *self._commands])
            told = f"{word} is none of {known}; put a blank in front to send it as a message"
            self._screen.show([Line("bad", told)])
            return False
        lane = _LANES.get(word)
        if text := (typed if lane is None else rest).strip():
            self._say(lane or "note", text)
        return True

    def _help(self) -> None:
        self._screen.show(Line("dim", f"  {word:<22} {told}") for word, told in _HELP.items())
