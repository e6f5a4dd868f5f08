import json
from dataclasses import replace

import pytest

from cueline.actors.presence import presence_of
from cueline.runtime.up_record import UpRecord, find_up, recovers
from cueline.stores.backend import backend_of


@pytest.fixture
def log(tmp_path):
    return tmp_path / "log.db"


@pytest.fixture
def record():
    return UpRecord(address="a:1", namespace="n", version="1", keeper=presence_of("up"))


def test_an_up_whose_process_lives_is_found(log, record):
    record.write(log)

    assert record == find_up(log)


def test_an_up_whose_process_has_ended_is_not(log, record):
    ended = replace(record.keeper, process_started=1)
    replace(record, keeper=ended).write(log)

    assert find_up(log) is None


def test_an_up_of_before_a_restart_of_the_machine_is_not(log, record):
    elsewhere = replace(record.keeper, boot_id="another")
    replace(record, keeper=elsewhere).write(log)

    assert find_up(log) is None


def test_an_up_that_ray_keeps_is_found_though_its_process_has_ended(log, record):
    ended = replace(record.keeper, process_started=1)
    kept = replace(record, keeper=ended, kept_by="ray")
    kept.write(log)

    assert kept == find_up(log)


def test_an_up_that_starts_or_is_taken_down_is_not(log, record):
    replace(record, ready=False).write(log)

    assert find_up(log) is None


def test_a_note_is_withdrawn_by_who_left_it(log, record):
    replace(record, ready=False).write(log)
    replace(record, keeper=presence_of("up")).withdraw(log)
    assert UpRecord.read(log) is not None

    record.withdraw(log)

    assert UpRecord.read(log) is None


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"keeper": {}}', "\0"])
def test_a_note_that_cannot_be_read_is_no_note(log, text):
    backend_of(log).write_up(text)

    assert find_up(log) is None


def test_a_note_with_what_a_later_version_adds_is_read(log, record):
    record.write(log)
    told = json.loads(backend_of(log).read_up())
    backend_of(log).write_up(json.dumps({**told, "color": "red"}))

    assert record == find_up(log)


def test_an_up_that_leaves_what_it_finds_goes_on_with_nothing(log, record):
    assert not recovers(log)
    record.write(log)
    assert recovers(log)

    replace(record, recover=False).write(log)

    assert not recovers(log)
