"""`cueline log backup` and `cueline log restore`: what the commands see of a log put back."""

import pytest

from tests.cli.test_damage import FLIP


def run(shell, name):
    agent = shell.agent(shell.hello)
    done = shell("run", "Hello", "--agent", agent, "--inline", "--id", name)
    assert 0 == done.exit_code, done.output


def listed(shell):
    return {each["id"] for each in shell.json("list")}


def test_read_models_notice_a_log_that_was_put_back(shell):
    run(shell, "one")
    assert 0 == shell("log", "backup", "copy.db").exit_code
    run(shell, "two")
    assert {"one", "two"} == listed(shell)

    restored = shell("log", "restore", "copy.db")
    older = listed(shell)
    run(shell, "three")
    diverged = listed(shell)
    (former,) = shell.log.parent.glob("log.db-until-*[0-9]")
    back = shell.json("log", "restore", str(former))

    assert 0 == restored.exit_code, restored.output
    assert f"the former log is now {former}" in restored.output
    assert ({"one"}, {"one", "three"}) == (older, diverged)
    assert {"one", "two"} == listed(shell)
    assert back["former"].startswith(f"{shell.log}-until-")
    assert back["same_log"] is True
    assert 0 == shell("audit", "verify").exit_code


def test_a_restore_says_that_the_former_log_was_another(shell):
    run(shell, "one")
    assert 0 == shell("log", "backup", "copy.db").exit_code

    first = shell("log", "restore", "copy.db", "--log", "other.db")
    agent = shell.agent(shell.hello)
    other = ("--log", "third.db")
    assert 0 == shell("run", "Hello", "--agent", agent, "--inline", *other).exit_code
    told = shell("log", "restore", "copy.db", *other)
    again = shell("log", "restore", "copy.db", *other)

    assert "former" not in first.output
    assert "; it was another log, not the one of the backup" in told.output
    assert "another log" not in again.output


@pytest.mark.parametrize("to", ["", ".", "memory:", "postgresql://db.internal/cueline"])
def test_a_backup_is_a_new_file_here(finished, to):
    before = sorted(finished.folder.iterdir())

    refused = finished("log", "backup", to)

    assert 2 == refused.exit_code
    assert "name a new file" in refused.stderr or "is a new file" in refused.stderr
    assert before == sorted(finished.folder.iterdir())


def test_a_damaged_event_is_told_and_is_in_the_backup_too(finished):
    finished.change(FLIP)

    done = finished("log", "backup", "copy.db")

    assert 1 == done.exit_code
    assert "damaged in .cueline/log.db too: " in done.output
    assert (finished.folder / "copy.db").exists()


def test_fsck_tells_what_is_wrong_and_what_to_type(finished):
    fine = finished("log", "fsck")
    finished.change(FLIP)
    damaged = finished("log", "fsck", "--repair")

    assert (0, 1) == (fine.exit_code, damaged.exit_code), fine.output
    assert ": 0 findings, 0 left\n" in fine.output
    assert "damage session-default/one@" in damaged.output
    assert "  next: the other events still load; `cueline log restore BACKUP` brings" in (
        damaged.output
    )
