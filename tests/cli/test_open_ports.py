"""The doctor says what the processes of a running `up` listen on."""

import socket
import sys

import pytest

from cueline.actors.presence import presence_of
from cueline.runtime.up_record import UpRecord

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="it is read in /proc")


@pytest.fixture
def ports(shell):
    """Return what is told of the ports of an `up` that is this process."""
    shell.log.parent.mkdir()
    UpRecord(address="there:1", namespace="n", version="1", keeper=presence_of("up")).write(
        shell.log
    )

    def told():
        return next(e for e in shell.json("doctor") if e["subject"] == "Ray ports")

    return told


@pytest.mark.parametrize(
    ("family", "address", "verdict"),
    [
        (socket.AF_INET, "127.0.0.1", "good"),
        (socket.AF_INET6, "::1", "good"),
        (socket.AF_INET6, "::ffff:127.0.0.1", "good"),
        (socket.AF_INET, "0.0.0.0", "warn"),
        (socket.AF_INET6, "::", "warn"),
    ],
)
def test_an_open_port_is_told_with_its_address(ports, family, address, verdict):
    with socket.socket(family) as listener:
        listener.bind((address, 0))
        listener.listen()

        found = ports()

    assert verdict == found["verdict"]
    assert f" on {address.removeprefix('::ffff:')}" in found["found"]


def test_where_no_up_runs_the_doctor_says_that_it_looked_for_none_else(shell):
    found = {each["subject"]: each for each in shell.json("doctor")}["Ray ports"]

    assert ("good", True) == (found["verdict"], found["found"].startswith("no `cueline up` runs"))
