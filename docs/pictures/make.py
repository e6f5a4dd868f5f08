"""Take the pictures of a terminal from a real run of an agent: `python docs/pictures/make.py`.

It needs tmux.
"""

import io
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from rich.console import Console
from rich.text import Text

from cueline.testing.wait import wait_until

HERE = Path(__file__).parent
COLUMNS, ROWS = 92, 40


def tmux(*words: str) -> str:
    """Run a command of tmux, on a server of its own."""
    line = ["tmux", "-L", "cueline-pictures", "-f", os.devnull, *words]
    return subprocess.run(line, capture_output=True, text=True, check=True).stdout


def type_line(line: str, *until: str) -> None:
    """Type *line*, and wait until the screen shows all of *until*."""
    tmux("send-keys", "-l", line)
    tmux("send-keys", "Enter")
    wait_until(lambda: all(text in tmux("capture-pane", "-p") for text in until))


def clear() -> None:
    """Clear the screen, all but the shell's prompt."""
    tmux("send-keys", "clear", "Enter")
    wait_until(lambda: tmux("capture-pane", "-p").strip() == "$")


def take(name: str, title: str) -> None:
    """Store what the screen shows as a picture."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO(), color_system="standard")
    console.print(Text.from_ansi(tmux("capture-pane", "-e", "-p").rstrip()))
    console.save_svg(str(HERE / f"{name}.svg"), title=title)


def main() -> None:
    """Run the agent in a copy of its folder, and take both pictures."""
    with tempfile.TemporaryDirectory() as folder:
        shutil.copytree(HERE / "party", folder, dirs_exist_ok=True)
        path = f"PATH={Path(sys.executable).parent}:{os.environ['PATH']}"
        size = ("-x", str(COLUMNS), "-y", str(ROWS))
        tmux("new-session", "-d", *size, "-c", folder, "env", path, "LOGNAME=ada", "PS1=$ ", "sh")
        try:
            goal = "Bring the guest list up to date"
            run = f'cueline run "{goal}" --agent agent.toml --inline --id party'
            clear()
            type_line(run, "waiting for a person's answer · 2")
            take("approval", "cueline run")
            type_line("y", "session party: completed")
            clear()
            type_line("cueline list; cueline show party", "GOAL", "session party: completed")
            take("show", "cueline list; cueline show")
        finally:
            tmux("kill-server")


if __name__ == "__main__":
    main()
