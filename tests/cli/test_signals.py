"""What ends a command, whatever it was begun with."""

import subprocess
import sys

LEAVE = """
import os
from cueline.cli.terminal import leave_terminal

os.close(0)
os.close(2)
leave_terminal()
print("goes on")
"""


def test_the_end_of_a_terminal_asks_nothing_of_what_was_closed():
    # As after `cueline run … <&- 2>&-`.
    done = subprocess.run(
        [sys.executable, "-c", LEAVE], check=False, stdout=subprocess.PIPE, text=True
    )

    assert (0, "goes on\n") == (done.returncode, done.stdout)
