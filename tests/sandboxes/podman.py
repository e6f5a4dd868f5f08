"""Podman as a server of the Docker API, with an image of BusyBox, without a registry.

Its settings are those of a machine without cgroups of version 2 and without the right to raise
limits, such as a container: `runc` instead of `crun`, and no default limits of open files.
"""

import io
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from cueline.testing.wait import wait_until

IMAGE = "localhost/cueline-test:latest"
APPLETS = "cat date env grep head id ls mkdir nohup rm setsid sh sleep touch tr wc"
BUSYBOX = shutil.which("busybox")
NEEDED = ("busybox", "catatonit", "podman", "runc")
MISSING = [name for name in NEEDED if shutil.which(name) is None]

# Podman sets limits of open files and of processes, which needs CAP_SYS_RESOURCE. Its setting
# of default limits is for its command line alone, not for what the API creates.
RUNTIME = """\
#!{python} -IS
import json, os, sys

for option, path in zip(sys.argv, sys.argv[1:]):
    if option in ("--bundle", "--process"):
        path += "/config.json" if option == "--bundle" else ""
        with open(path) as file:
            config = json.load(file)
        config.get("process", config)["rlimits"] = []
        with open(path, "w") as file:
            json.dump(config, file)
os.execvp("runc", ["runc", *sys.argv[1:]])
"""
CONTAINERS = """\
[engine]
cgroup_manager = "cgroupfs"
events_logger = "none"
lock_type = "file"
runtime = "plain"
tmp_dir = "{root}/libpod"
[engine.runtimes]
plain = ["{runtime}"]
"""
STORAGE = """\
[storage]
driver = "vfs"
graphroot = "{root}/graph"
runroot = "{root}/run"
"""


@contextmanager
def podman(root: Path) -> Iterator[str]:
    """Run a server whose state is below *root*; yield its address."""
    runtime = root / "runtime"
    runtime.write_text(RUNTIME.format(python=sys.executable))
    runtime.chmod(0o755)
    containers, storage = root / "containers.conf", root / "storage.conf"
    containers.write_text(CONTAINERS.format(runtime=runtime, root=root))
    storage.write_text(STORAGE.format(root=root))
    environment = {
        **os.environ,
        "CONTAINERS_CONF": str(containers),
        "CONTAINERS_STORAGE_CONF": str(storage),
    }

    def run(*words: str, given: bytes = b"") -> None:
        subprocess.run(
            ["podman", *words], env=environment, input=given, check=True, capture_output=True
        )

    run("import", "--quiet", "-", IMAGE, given=_system())
    address = root / "podman.sock"
    serve = ["podman", "system", "service", "--time=0", f"unix://{address}"]
    with (root / "podman.log").open("wb") as log:
        server = subprocess.Popen(serve, cwd=root, env=environment, stderr=log)
    try:
        wait_until(address.exists, within=30)
        yield f"unix://{address}"
    finally:
        server.terminate()
        server.wait()
        run("rm", "--all", "--force", "--time=0")
        # The monitor of each command waits for 5 minutes in case that somebody asks for its exit.
        for each in psutil.process_iter(["cmdline"]):
            if any(str(root) in word for word in each.info["cmdline"] or ()):
                with suppress(psutil.NoSuchProcess):
                    each.kill()


def _system() -> bytes:
    """Return the archive of a system that is BusyBox alone."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name in ("bin", "tmp", "proc", "dev", "sys", "etc"):
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777 if name == "tmp" else 0o755
            archive.addfile(folder)
        archive.add(os.path.realpath(BUSYBOX), "bin/busybox")
        for name in APPLETS.split():
            link = tarfile.TarInfo(f"bin/{name}")
            link.type, link.linkname = tarfile.SYMTYPE, "busybox"
            archive.addfile(link)
    return packed.getvalue()
