"""The copy of the files that a fork goes on with."""

import pytest

from cueline.actors.presence import machine_name
from cueline.client.fork import copied
from cueline.errors import LogUnavailableError, UnknownOutcomeError
from cueline.events.agent import Workspace
from cueline.stores.backend import backend_of
from tests.session_example import AGENT

LOG = ("log", "log-wal", "log-shm", "log-views.db", "log.presence", "log-up.json")
FILES = ("login.py", "data/log", "data/log-views.db", "list.txt")


@pytest.fixture
def agent(tmp_path):
    """An agent that works where its log is."""
    work = tmp_path / "work"
    (work / "data").mkdir(parents=True)
    for name in (*LOG, *FILES):
        (work / name).write_text(name)
    return AGENT.model_copy(update={"workspace": Workspace(machine=machine_name(), path=str(work))})


def files_in(folder):
    return {str(each.relative_to(folder)) for each in folder.rglob("*") if each.is_file()}


def test_a_copy_holds_all_files_but_those_of_the_log_itself(agent, tmp_path):
    with copied(agent, "two", backend_of(tmp_path / "work" / "log")):
        assert set(FILES) == files_in(tmp_path / "work-two")


@pytest.mark.parametrize(
    ("error", "stays"),
    [
        (LogUnavailableError("log.db", "the disk is full"), False),
        (UnknownOutcomeError("inbox-default/two", "the disk failed"), True),
    ],
)
def test_a_copy_stays_where_a_fork_may_be_recorded_that_works_there(agent, tmp_path, error, stays):
    with pytest.raises(type(error)), copied(agent, "two", backend_of(tmp_path / "log.db")):
        raise error

    assert stays == (tmp_path / "work-two").exists()
