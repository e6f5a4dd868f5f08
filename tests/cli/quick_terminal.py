"""A terminal in which commands run as forks of the tests' own process, without a shell.

It is a pseudo-terminal, which the command has for its own as in any other: its keys, signals and
size are real. Only the start of an interpreter, tmux and a shell are left out.
"""

import codecs
import os
import re
import signal
import sys
import termios
import traceback
import warnings
from contextlib import suppress
from threading import Lock, Thread

from cueline.cli import main
from cueline.testing.wait import wait_until

KEYS = {"Enter": "\r", "M-Enter": "\x1b\r", "Up": "\x1b[A"}
CODE = re.compile(r"\x1b\[([?<=>]?)([\d;]*)([@-~])|\x1b[=>78]|\x1b\][^\x07]*\x07|(.)", re.DOTALL)


class Screen:
    """What a terminal shows after what was written to it; its rows are as long as they get."""

    def __init__(self):
        self._rows = [[]]
        self._row = self._column = 0
        self._rest = ""

    def write(self, text):
        text = self._rest + text
        at = 0
        for found in CODE.finditer(text):
            if found[4] == "\x1b" and len(text) - found.start() < 40:
                break  # the rest of it is to come
            at = found.end()
            if found[4] is not None:
                self._put(found[4])
            elif found[3] is not None and not found[1]:
                numbers = [int(each or 0) for each in found[2].split(";")]
                self._obey(found[3], numbers[0])
        self._rest = text[at:]

    def _put(self, character):
        match character:
            case "\n":
                self._row += 1
            case "\r":
                self._column = 0
            case "\b":
                self._column = max(0, self._column - 1)
            case _ if character >= " ":
                row = self._reach()
                row[self._column : self._column + 1] = character
                self._column += 1

    def _obey(self, code, number):
        match code:
            case "A":
                self._row = max(0, self._row - (number or 1))
            case "B":
                self._row += number or 1
            case "C":
                self._column += number or 1
            case "D":
                self._column = max(0, self._column - (number or 1))
            case "G":
                self._column = max(0, number - 1)
            case "J" if number == 0:
                del self._reach()[self._column :]
                del self._rows[self._row + 1 :]
            case "K" if number == 0:
                del self._reach()[self._column :]
            case "K":
                self._reach().clear()
            case "h" | "l" | "m":
                pass
            case _:
                raise AssertionError(f"{number}{code} is not known to these tests")

    def _reach(self):
        """Return the row of the cursor, filled up to there."""
        self._rows += ([] for _ in range(self._row + 1 - len(self._rows)))
        row = self._rows[self._row]
        row += " " * (self._column - len(row))
        return row

    @property
    def text(self):
        return "\n".join(map("".join, self._rows))


class QuickTerminal:
    """A terminal of 100 by 40, in which one command runs at a time."""

    def __init__(self):
        self._pid = None
        self._lock = Lock()

    def command(self, *words):
        self._ours, theirs = os.openpty()
        termios.tcsetwinsize(theirs, (40, 100))
        self._shown = Screen()
        sys.stdout.flush()
        sys.stderr.flush()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # other threads of this process do not come along
            self._pid = os.fork()
        if self._pid == 0:
            be(words, theirs)
        os.close(theirs)
        self._reading = Thread(target=self._read, daemon=True)
        self._reading.start()

    def type(self, *keys):
        for key in keys:
            control = chr(ord(key[2]) & 31) if re.fullmatch("C-.", key) else key
            os.write(self._ours, KEYS.get(key, control).encode())

    @property
    def screen(self):
        with self._lock:
            return self._shown.text

    def sees(self, text):
        wait_until(lambda: text in self.screen)
        return self.screen

    def close(self):
        if self._pid is not None:
            if self._reading.is_alive():
                for kill in (os.killpg, os.kill):  # it leads what it has started, if it has
                    with suppress(ProcessLookupError):
                        kill(self._pid, signal.SIGKILL)
            self._reading.join()
            os.close(self._ours)

    def _read(self):
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        while True:
            try:
                came = os.read(self._ours, 1 << 16)
            except OSError:  # its other end is closed
                break
            with self._lock:
                self._shown.write(decoder.decode(came))
        _, status = os.waitpid(self._pid, 0)
        with self._lock:
            self._shown.write(f"\r\nexit {os.waitstatus_to_exitcode(status)}\r\n")


def be(words, terminal):
    """Be a process that runs a command in *terminal*, to its end."""
    code = 1
    try:
        os.login_tty(terminal)
        sys.stdin, sys.stdout, sys.stderr = (
            open(number, mode, encoding="utf-8")  # noqa: SIM115, PTH123 - they stay
            for number, mode in enumerate(("r", "w", "w"))
        )
        signal.signal(signal.SIGINT, signal.default_int_handler)
        sys.argv = ["cueline", *words]
        main()
    except SystemExit as exit_:
        code = exit_.code if isinstance(exit_.code, int) else 1
    except BaseException:  # noqa: BLE001 - there is nobody else to tell
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        os._exit(code or 0)
