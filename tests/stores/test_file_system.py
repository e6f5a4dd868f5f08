from pathlib import Path

import pytest

from cueline.errors import LogUnavailableError
from cueline.stores.file_identity import find_lock_owner, kind_of, refuse_place

MOUNTS = r"""
22 1 254:0 / / rw,relatime - ext4 /dev/vda rw
23 22 0:5 / /home rw - nfs4 server:/home rw,vers=4.2
24 23 0:9 / /home/ada/local rw shared:5 - xfs /dev/vdb rw
25 22 0:7 / /mnt/a\040disk rw - cifs //server/share rw
26 22 0:8 / /over rw - ext4 /dev/vdc rw
27 22 0:6 / /over rw - fuse.sshfs ada@server: rw
""".strip()


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/log.db", "ext4"),
        ("/homely/log.db", "ext4"),
        ("/home/ada/log.db", "nfs4"),
        ("/home/ada/local/deep/log.db", "xfs"),
        ("/mnt/a disk/log.db", "cifs"),
        ("/over/log.db", "fuse.sshfs"),
    ],
)
def test_a_path_is_on_the_file_system_mounted_nearest(path, kind):
    assert kind == kind_of(Path(path), MOUNTS)


def test_a_network_file_system_is_refused_with_what_to_do():
    with pytest.raises(LogUnavailableError, match=r"\(nfs4\).*choose a path on a local disk"):
        refuse_place(Path("/home/ada/log.db"), MOUNTS)


@pytest.mark.parametrize(
    "name", [":memory:", "file:log.db", "file::memory:?cache=shared", "sqlite:///log.db"]
)
def test_what_would_not_be_kept_at_its_path_is_no_log(name):
    with pytest.raises(LogUnavailableError, match="it names no file; name a path, or `memory:`"):
        refuse_place(Path(name), MOUNTS)


def test_a_file_may_have_a_colon_in_its_name():
    refuse_place(Path("2026-11-23T05:52.db"), "")


@pytest.mark.parametrize("mounts", [MOUNTS, "", None])
def test_a_local_disk_is_taken(mounts, tmp_path):
    refuse_place(tmp_path / "log.db", mounts)


def test_the_writer_is_who_locks_its_byte_of_the_shared_memory():
    locks = """
1: POSIX  ADVISORY  READ 11 fe:00:77 124 124
2: POSIX  ADVISORY  WRITE 22 fe:00:78 120 120
3: POSIX  ADVISORY  WRITE 33 fe:00:77 120 120
4: -> FLOCK  ADVISORY  WRITE 44 fe:00:77 0 EOF
""".strip()

    assert 33 == find_lock_owner(locks, 77)
    assert find_lock_owner(locks, 79) is None
