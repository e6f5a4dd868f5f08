"""The call in whose middle the process is killed. It says nothing about repetitions."""

import time
from pathlib import Path


def pay(folder: Path) -> str:
    """Note that the call began, then wait until `go` is there, and return."""
    with (folder / "journal").open("a") as journal:
        journal.write("pay\n")
    while not (folder / "go").exists():
        time.sleep(0.01)
    return "paid"
