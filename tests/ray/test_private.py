"""A Ray of our own is nobody else's: not its ports, not its files."""

import os
import stat
from contextlib import suppress
from pathlib import Path

import psutil
from ray._private.worker import global_worker


def test_no_other_machine_reaches_a_port_of_our_ray(cluster):
    ours, listening = psutil.Process(), set()

    for process in (ours, *ours.children(recursive=True)):
        with suppress(psutil.NoSuchProcess):  # one of a test before has just ended
            listening |= {
                (process.name(), connection.laddr.ip.removeprefix("::ffff:"))
                for connection in process.net_connections("inet")
                if connection.status == psutil.CONN_LISTEN
            }

    assert "gcs_server" in {name for name, _ in listening}
    assert {"127.0.0.1"} == {address for _, address in listening}


def test_no_other_user_looks_into_the_files_of_our_ray(cluster):
    folder = Path(global_worker.node.get_temp_dir_path()).parent

    assert Path(global_worker.node.raylet_socket_name).is_relative_to(folder)
    assert os.environ["RAY_TMPDIR"] == str(folder.parent)  # which may be anybody's
    assert 0o700 == stat.S_IMODE(folder.stat().st_mode)
