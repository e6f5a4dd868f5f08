"""A copy of cueline in which functions raise, and one who types commands with it."""

import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import cueline

PAID = """
from cueline import tool


@tool
def pay() -> str:
    \"\"\"Pay once.\"\"\"
    with open({paid!r}, "a") as book:
        book.write("paid\\n")
    return "receipt 7"
"""
SCRIPT = """
[[reply]]
text = "I will pay."
calls = [{ name = "pay", arguments = {} }]

[[reply]]
text = "Paid."
"""
AGENT = """
name = "clerk"
provider = "scripted"
model = "script.toml"
tools = ["tool.py:pay"]
"""


class BrokenShell:
    """Somebody who has a copy of cueline in which functions can be broken and mended."""

    def __init__(self, folder):
        self.folder = folder
        self._code = folder / "broken"
        self.book = folder / "book.txt"
        (folder / "tool.py").write_text(PAID.format(paid=str(self.book)))
        (folder / "script.toml").write_text(SCRIPT)
        (folder / "agent.toml").write_text(AGENT)
        source = Path(cueline.__file__).parent
        # Bytecode, too, but for what is being written: nothing is compiled but what is broken.
        ignored = shutil.ignore_patterns("*.pyc.*")
        shutil.copytree(source, self._code / "cueline", ignore=ignored)

    def break_(self, file, function, when="True"):
        """Have *function* raise *when* its arguments are so."""
        path = self._code / "cueline" / file
        text = path.read_text()
        pattern = rf"(?ms)^( *)def {function}\((.*?)\)( -> [^\n]*)?:\n"
        found = re.search(pattern, text)
        assert found, function
        indent = found[1] + "    "
        check = f"{indent}if {when}:\n{indent}    raise TypeError('broken by a test')\n"
        path.write_text(text[: found.end()] + check + text[found.end() :])

    def mend(self):
        """Use the whole cueline from now on."""
        shutil.rmtree(self._code)

    def __call__(self, *words):
        """Run a command to its end."""
        env = os.environ | {"PYTHONPATH": str(self._code)}
        return subprocess.run(
            [sys.executable, "-m", "cueline.cli", *words],
            cwd=self.folder,
            check=False,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
        )

    def run(self, *more):
        """Run a session that pays once."""
        return self("run", "Pay", "--agent", "agent.toml", "--id", "one", "--auto-approve", *more)

    def row(self):
        """Return what `list` says of the session."""
        (row,) = json.loads(self("list", "--json").stdout)
        return row
