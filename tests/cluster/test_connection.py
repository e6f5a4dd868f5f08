import asyncio
import os
import signal
import subprocess
import sys

import pytest
import ray

from cueline.cluster import connection
from cueline.cluster.connection import connect_ray
from cueline.errors import ClusterError


def test_an_address_where_nobody_listens_is_refused_at_once():
    with pytest.raises(ClusterError, match="nobody answers there"), connect_ray("127.0.0.1:1", "x"):
        pass


def test_ray_client_is_refused():
    with pytest.raises(ClusterError, match="name HOST:PORT"), connect_ray("ray://head:10001", "x"):
        pass


def test_what_ray_starts_does_not_end_with_the_terminal():
    # Whoever keeps it takes it down in order.
    program = "import signal; print(signal.SIGHUP in signal.pthread_sigmask(signal.SIG_BLOCK, ()))"
    with connection._detach_from_terminal():
        told = subprocess.check_output([sys.executable, "-c", program], text=True)

    assert "True" == told.strip()
    assert signal.SIGHUP not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_asking_for_a_cluster_does_not_load_ray():
    wanted = "cueline.runtime.on_ray, cueline.runtime.up, cueline.cluster.connection"
    program = f"import sys, {wanted}; print('ray' in sys.modules)"
    told = subprocess.check_output([sys.executable, "-c", program], text=True)

    assert "False" == told.strip()


async def test_ray_can_be_wanted_in_any_thread(monkeypatch):
    # Only the main thread may set a signal's handler; Ray itself does without.
    def start(*_):
        raise RuntimeError("no room")

    def connect():
        with connect_ray(None, "x"):
            pass

    monkeypatch.setattr(connection, "_prepare", lambda *, ours: None)
    monkeypatch.setattr(connection, "_start", start)

    with pytest.raises(ClusterError, match="it cannot be started on this machine: no room"):
        await asyncio.to_thread(connect)


@pytest.mark.parametrize(
    "why", [Exception("the node timed out"), OSError("the path of a socket is too long")]
)
def test_whatever_keeps_ray_from_starting_is_told_in_a_sentence(monkeypatch, why):
    def start(*_):
        raise why

    monkeypatch.setattr(connection, "_prepare", lambda *, ours: None)
    monkeypatch.setattr(connection, "_start", start)

    told = f"Ray: it cannot be started on this machine: {why}"
    with pytest.raises(ClusterError, match=told), connect_ray(None, "x"):
        pass


def test_sigterm_while_ray_starts_is_for_whoever_starts_it(monkeypatch):
    """D5: Ray's own handler, which it sets first of all, ends the process without a word."""
    caught = []

    def node(*_, **__):
        os.kill(os.getpid(), signal.SIGTERM)
        raise RuntimeError("no room")

    monkeypatch.setattr(connection, "_prepare", lambda *, ours: None)
    monkeypatch.setattr(ray._private.node, "Node", node)
    before = signal.signal(signal.SIGTERM, lambda *_: caught.append("ours"))

    try:
        with pytest.raises(ClusterError, match="no room"), connect_ray(None, "x"):
            pass
    finally:
        signal.signal(signal.SIGTERM, before)

    assert ["ours"] == caught
