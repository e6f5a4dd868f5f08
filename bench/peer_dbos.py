"""Runs the conversation in DBOS: a workflow with a step for the model and one for the tool."""

import time
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory

from dbos import DBOS, DBOSConfig

from bench.peer import Answer, serve
from bench.text import ANSWERED, ASKED, SAID, text


@DBOS.step()
def ask_model(turn: int) -> dict[str, str]:
    """Return the model's reply at *turn*."""
    return {"text": text(turn, SAID), "call": f"call_{turn}", "query": text(turn, ASKED)}


@DBOS.step()
def look_up(query: str) -> str:
    """Return the tool's result for *query*."""
    return text(int(query[:6]), ANSWERED)


@DBOS.workflow()
def talk(turns: int) -> int:
    """Run all *turns* turns of the conversation."""
    said = 0
    for turn in range(1, turns + 1):
        reply = ask_model(turn)
        said += len(reply["text"]) + len(look_up(reply["query"]))
    return said


def play(turns: int) -> Answer:
    """Run *turns* turns in the database."""
    began = time.perf_counter()
    talk(turns)
    return {"seconds": time.perf_counter() - began}


if __name__ == "__main__":
    with TemporaryDirectory() as folder:
        path = Path(folder) / "dbos.sqlite"
        config: DBOSConfig = {
            "name": "bench",
            "system_database_url": f"sqlite:///{path}",
            "log_level": "ERROR",
            "run_admin_server": False,
        }
        DBOS(config=config)
        DBOS.launch()
        serve(version("dbos"), play)
