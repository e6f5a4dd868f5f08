"""Machines on this one: each with a process table and a network of its own, and Ray on it."""

import os
import shutil
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

import psutil

from cueline.testing.wait import PATIENCE_SECONDS, wait_until
from tests.postgres_server import NONE, installed
from tests.ray.marked import Marked

PORT = 6379
DETECTION = {
    # Ray's head notices a node that is silent within 4 s.
    "RAY_health_check_initial_delay_ms": "0",
    "RAY_health_check_period_ms": "500",
    "RAY_health_check_timeout_ms": "1000",
    "RAY_health_check_failure_threshold": "3",
    # A node that has lost its head ends after so long.
    "RAY_gcs_rpc_server_reconnect_timeout_s": "5",
}
RAY = "from ray.scripts.scripts import main; main()"
DRAIN = """
import sys, time, ray
from ray._private.worker import global_worker
from ray.core.generated.autoscaler_pb2 import DrainNodeReason
ray.init(address=sys.argv[1], log_to_driver=False)
[node] = [n["NodeID"] for n in ray.nodes() if n["NodeManagerAddress"] == sys.argv[2]]
accepted, why = global_worker.gcs_client.drain_node(
    node, DrainNodeReason.DRAIN_NODE_REASON_PREEMPTION, "it goes", int(time.time() * 1000) + 60_000
)
assert accepted, why
"""


def missing():
    """Return why there can be no such machines here, or no PostgreSQL; None if there can."""
    if not installed():
        return NONE
    tools = ("ip", "unshare", "nsenter")
    if os.geteuid() != 0 or not all(map(shutil.which, tools)):
        return f"machines need root, and {', '.join(tools)}"
    probe = ["unshare", "--net", "--pid", "--fork", "--mount-proc", "true"]
    if subprocess.run(probe, check=False, capture_output=True).returncode:
        return "machines need namespaces, which this one refuses"
    return None


class Network:
    """A switch, to which this machine and the others are plugged in."""

    def __init__(self):
        token = uuid4().hex[:5]
        self.name = f"cm{token}"
        self._prefix = f"10.{200 + int(token[:2], 16) % 50}.{int(token[2:4], 16)}"
        self.address = f"{self._prefix}.254"
        self.machines = []
        ip("link", "add", self.name, "type", "bridge")
        ip("addr", "add", f"{self.address}/24", "dev", self.name)
        ip("link", "set", self.name, "up")

    @property
    def addresses(self):
        return f"{self._prefix}.0/24"

    def plug_in(self):
        """Return the number and the address of a new machine."""
        number = len(self.machines) + 1
        self.machines.append(number)
        space, port, address = self.space(number), self.port(number), f"{self._prefix}.{number}"
        ip("netns", "add", space)
        ip("link", "add", port, "type", "veth", "peer", "name", "eth0", "netns", space)
        ip("link", "set", port, "master", self.name, "up")
        ip("-n", space, "addr", "add", f"{address}/24", "dev", "eth0")
        ip("-n", space, "link", "set", "eth0", "up")
        ip("-n", space, "link", "set", "lo", "up")
        return number, address

    def space(self, number):
        return f"{self.name}-{number}"

    def port(self, number):
        return f"{self.name}p{number}"

    def unplug(self, number):
        """Cut a machine off from everything."""
        ip("link", "set", self.port(number), "down")

    def plug_in_again(self, number):
        ip("link", "set", self.port(number), "up")

    def separate(self, *numbers):
        """Cut these machines off from each other, and from nothing else."""
        self._isolate("on", numbers)

    def join(self, *numbers):
        self._isolate("off", numbers)

    def _isolate(self, how, numbers):
        for number in numbers:
            ip("link", "set", "dev", self.port(number), "type", "bridge_slave", "isolated", how)

    def close(self):
        for number in self.machines:
            ip("netns", "del", self.space(number))
        ip("link", "del", self.name)


class Machine:
    """A machine with a node of Ray; without *head* it is one."""

    def __init__(self, network, marked, head=None):
        self.number, self.address = network.plug_in()
        self._output = marked.place / f"machine-{self.number}"
        own = {"XDG_CACHE_HOME": f"{self._output}-cache", "XDG_STATE_HOME": f"{self._output}-state"}
        self.environ = marked.environ | own
        for folder in (ray := Path(f"{self._output}-ray"), Path(marked.environ["RAY_TMPDIR"])):
            folder.mkdir(exist_ok=True)
        where = ["--address", head.gcs] if head else ["--head", "--port", str(PORT)]
        words = ["start", *where, "--node-ip-address", self.address, "--num-cpus", "2", "--block"]
        if head is None:
            words += ["--include-dashboard=false", "--disable-usage-stats"]
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [
                    *("ip", "netns", "exec", network.space(self.number)),
                    *("unshare", "--pid", "--fork", "--kill-child", "--mount-proc"),
                    # Ray's folder, which all have under one name, is its own.
                    # A shell is the first process, and takes over orphans, as `init` would.
                    *("sh", "-c", 'mount --bind "$0" "$RAY_TMPDIR"; "$@" & wait', str(ray)),
                    *(sys.executable, "-c", RAY, *words),
                ],
                env=self.environ,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )

    @property
    def gcs(self):
        return f"{self.address}:{PORT}"

    def started(self):
        """Wait until Ray runs, and return this machine."""
        wait_until(self._is_up)
        [self._first] = psutil.Process(self._process.pid).children()
        self.pids = Path(f"/proc/{self._first.pid}/ns/pid").readlink()
        return self

    def _is_up(self):
        said = self._output.read_text(errors="replace")
        assert self._process.poll() is None, said
        return "Ray runtime started" in said

    def within(self, folder, *command):
        """Return the words that run a *command* on this machine, in *folder*."""
        return [
            *("nsenter", "--target", str(self._first.pid), "--net", "--pid", "--mount"),
            *("sh", "-c", 'cd "$0" && exec "$@"', str(folder), *command),
        ]

    def processes(self):
        """Return the processes of this machine."""
        return [process for process in psutil.process_iter() if self._has(process)]

    def _has(self, process):
        with suppress(OSError):
            return Path(f"/proc/{process.pid}/ns/pid").readlink() == self.pids
        return False

    @property
    def runs(self):
        return self._process.poll() is None

    def kill(self):
        """SIGKILL everything on it at once."""
        if self.runs:
            # Before it has a first process, its end is that of what starts one.
            for process in psutil.Process(self._process.pid).children() or [self._process]:
                process.kill()
        self._process.wait(PATIENCE_SECONDS)

    def freeze(self):
        """SIGSTOP everything on it."""
        frozen = set()
        while new := set(self.processes()) - frozen:
            for process in new:
                with suppress(psutil.Error):
                    process.send_signal(signal.SIGSTOP)
            frozen |= new

    def thaw(self):
        for process in self.processes():
            with suppress(psutil.Error):
                process.send_signal(signal.SIGCONT)

    def drain(self, node):
        """Have Ray's head, which this machine is, drain the *node*."""
        command = self.within("/", sys.executable, "-c", DRAIN, self.gcs, node.address)
        done = subprocess.run(
            command, env=self.environ, check=False, capture_output=True, text=True
        )
        assert 0 == done.returncode, done.stderr


class Machines:
    """A network, and some machines with one cluster."""

    def __init__(self, count):
        self._count = count
        self.marked = Marked()
        place = {"RAY_TMPDIR": str(self.marked.place / "ray")}
        token = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": uuid4().hex * 2}
        self.marked.environ |= DETECTION | place | token
        self.network = Network()
        self.head, self.others = None, []
        self._all = []

    def start(self):
        """Start a cluster; machines of an earlier one stay as they are."""
        self.head = self._machine(None).started()
        self.others = [self._machine(self.head) for _ in range(self._count - 1)]
        for machine in self.others:
            machine.started()

    def _machine(self, head):
        self._all.append(Machine(self.network, self.marked, head))
        return self._all[-1]

    @property
    def running(self):
        return [machine for machine in self._all if machine.runs]

    def close(self):
        """Kill all machines; return the processes that outlived them."""
        for machine in self._all:
            machine.kill()
        left = self.marked.living()
        self.network.close()
        self.marked.close()
        return left


def ip(*words):
    subprocess.run(["ip", *words], check=True)
