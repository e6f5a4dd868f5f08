"""That all is printed, also where Python was told to keep nothing back."""

import os
import subprocess
import sys
from contextlib import suppress

PRINTS = """
import asyncio
from cueline.runtime import loop
from cueline.cli.terminal import settle_streams

settle_streams()
loop.run(asyncio.sleep(0))
print("é" * 100_000)
"""


def test_a_slow_reader_of_an_unbuffered_command_gets_all_of_it(popen):
    # Where uvloop has run, Linux ends a write to a full pipe early, some 10 ms later.
    environ = {**os.environ, "PYTHONUNBUFFERED": "1", "PYTHONUTF8": "1"}
    process = popen([sys.executable, "-c", PRINTS], stdout=subprocess.PIPE, env=environ)

    with suppress(subprocess.TimeoutExpired):
        process.wait(0.5)  # it ends, unread, only where it dropped the rest
    printed, _ = process.communicate()

    assert "é" * 100_000 + "\n" == printed.decode()
