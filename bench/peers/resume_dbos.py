"""DBOS: the time from the recovery of a long workflow until its next step begins."""

import os
import signal
import sys
import time
from pathlib import Path

from dbos import DBOS, DBOSConfig, SetWorkflowID

from bench.text import ANSWERED, SAID, text

FOLDER, TURNS = Path(sys.argv[1]), int(sys.argv[2])
CONFIG: DBOSConfig = {
    "name": "bench",
    "system_database_url": f"sqlite:///{FOLDER / 'dbos.sqlite'}",
    "log_level": "ERROR",
    "run_admin_server": False,
}
DBOS(config=CONFIG)


@DBOS.step()
def ask_model(turn: int) -> str:
    """Return the model's reply at *turn*."""
    return text(turn, SAID)


@DBOS.step()
def look_up(turn: int) -> str:
    """Return the tool's result at *turn*."""
    return text(turn, ANSWERED)


@DBOS.step()
def last(began: float) -> None:
    """End here, the first time in the middle."""
    if sys.argv[3] == "begin":
        os.kill(os.getpid(), signal.SIGKILL)
    print(1_000 * (time.perf_counter() - began), flush=True)


@DBOS.workflow()
def talk() -> None:
    """Run all turns, and the last step; the start of DBOS is not measured."""
    began = time.perf_counter()
    for turn in range(1, TURNS + 1):
        ask_model(turn)
        look_up(turn)
    last(began)


DBOS.launch()
if sys.argv[3] == "begin":
    with SetWorkflowID("one"):
        talk()
DBOS.retrieve_workflow("one").get_result()
DBOS.destroy()
