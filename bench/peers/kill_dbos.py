"""DBOS: a workflow with the call as its step, in SQLite. It recovers at its start."""

import sys
from importlib.metadata import version
from pathlib import Path

from dbos import DBOS, DBOSConfig, SetWorkflowID

from bench.peers.kill_tool import pay

FOLDER = Path(sys.argv[1])
CONFIG: DBOSConfig = {
    "name": "bench",
    "system_database_url": f"sqlite:///{FOLDER / 'dbos.sqlite'}",
    "log_level": "ERROR",
    "run_admin_server": False,
}
DBOS(config=CONFIG)


@DBOS.step()
def step() -> str:
    """Pay."""
    return pay(FOLDER)


@DBOS.workflow()
def workflow() -> str:
    """Run the step."""
    return step()


DBOS.launch()
if sys.argv[2] == "begin":
    with SetWorkflowID("one"):
        workflow()
print(version("dbos"), DBOS.retrieve_workflow("one").get_result(), sep="\t")
DBOS.destroy()
