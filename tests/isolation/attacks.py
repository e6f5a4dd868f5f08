"""The attempts of a hostile command; each prints `GOT IT` where it succeeds.

`docs/reliability.md` has them as a table.
"""

from typing import NamedTuple

GOT_IT = "GOT IT"
PYTHON = "python3 - <<'END'\n{}\nEND"
CONNECT = PYTHON.format(
    """\
import os, socket
with socket.socket(socket.{family}) as peer:
    peer.settimeout(5)
    peer.connect({address})
    print("GOT IT")"""
)
BY_PROXY = PYTHON.format(
    """\
import os, socket
from urllib.parse import urlsplit
target = {target}
proxy = urlsplit(os.environ["HTTP_PROXY"])
there = (proxy.hostname, proxy.port) if proxy.port else target
with socket.create_connection(there, 5) as peer:
    if proxy.port:
        peer.sendall(("CONNECT %s:%d HTTP/1.1\\r\\n\\r\\n" % target).encode())
        print(said := peer.recv(4096).decode())
    if not proxy.port or " 200 " in said:
        print("GOT IT")"""
)
SYSTEM_CALL = PYTHON.format(
    """\
import ctypes, errno
libc = ctypes.CDLL(None, use_errno=True)
if libc.syscall({arguments}) >= 0 or ctypes.get_errno() not in (errno.EPERM, errno.ENOSYS):
    print("GOT IT")"""
)
FORKS = """\
import os, signal
children = []
try:
    for _ in range(700):
        child = os.fork()
        if not child:
            signal.pause()
        children.append(child)
    print("GOT IT")
finally:
    for each in children:
        os.kill(each, signal.SIGKILL)"""
TRACE = """\
import ctypes, os
libc, victim = ctypes.CDLL(None), int(os.environ["VICTIM"])
if libc.ptrace(16, victim, 0, 0) == 0:
    os.waitpid(victim, 0x40000000)
    libc.ptrace(17, victim, 0, 0)
    print("GOT IT")"""
LIMIT = """\
import os, resource
resource.prlimit(int(os.environ["VICTIM"]), resource.RLIMIT_CORE, (0, 0))
print("GOT IT")"""
ATTACH = """\
import ctypes, os
libc = ctypes.CDLL(None)
libc.shmat.restype = ctypes.c_ssize_t
if libc.shmat(int(os.environ["SEGMENT"]), None, 0) != -1:
    print("GOT IT")"""
SEND = """\
import os, socket
pair = socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)
pair[0].sendto(b"planted", os.environ["JOURNAL"])
print("GOT IT")"""
FILL = """\
import tempfile
files = [tempfile.TemporaryFile() for _ in range(3)]
for each in files:
    each.write(bytes(14 << 20))
    each.flush()
print("GOT IT")"""
MEMORY = "import mmap; mmap.mmap(-1, 300 << 20, flags=mmap.MAP_PRIVATE); print('GOT IT')"

PIDS = "its own process namespace, whose /proc shows no other process"
NETWORK = "its own network namespace, without any interface that is up but its own loopback"
RESOLVED = "the proxy resolves each name once, and connects to public addresses only"
MOUNTS = "its own mount namespace, in which the path does not exist"
HOME = "an empty private home folder"
FILTER = "the filter of system calls"
IPC = "its own namespace of System V objects"

NOT_HELD = "**not held**: "
RULES = "no rule grants the path"
DOMAIN = "Landlock lets no process look into one outside"
SOCKETS = "the filter, which refuses all sockets"
SIGNALS = "Landlock's scope for signals (Linux 6.12)"
CALLS = "the filter"
LOG_INSIDE = "commands are refused where the log is in the workspace"
GIT = NOT_HELD + "the rule for the workspace holds for all that is in it"
COUNTED = "RLIMIT_NPROC, which counts all processes of the user; " + NOT_HELD + "for root"


HOSTS = "a list of hosts needs bubblewrap; commands are refused"


class Attack(NamedTuple):
    name: str
    refused_by: str
    """What refuses it with bubblewrap."""
    landlock: str
    """What refuses it with Landlock, or why it does not."""
    command: str
    machine: str = ""
    """A command that fails on a machine where the attempt fails anyway."""
    kind: str = "bwrap"
    """`hosts`: the isolation allows some hosts, by the proxy."""


ATTACKS = (
    Attack(
        "read a provider's key in the environment of the runner",
        PIDS,
        DOMAIN,
        "cat /proc/[0-9]*/environ 2>/dev/null | grep -aq planted-key && echo GOT IT",
    ),
    Attack("read the key store", HOME, RULES, "cat ~/.config/cueline/keys.json && echo GOT IT"),
    Attack("read `~/.ray/auth_token`", HOME, RULES, "cat ~/.ray/auth_token && echo GOT IT"),
    Attack("read a key of SSH", HOME, RULES, "cat ~/.ssh/id_ed25519 && echo GOT IT"),
    Attack(
        "read the log in the workspace",
        "an empty folder over `.cueline`, and one over each file of the log",
        LOG_INSIDE,
        "cat .cueline/log.db && echo GOT IT",
    ),
    Attack(
        "read a file beside the log",
        "the same",
        LOG_INSIDE,
        "cat .cueline/log.db-wal && echo GOT IT",
    ),
    Attack(
        "put another log in its place",
        "a mounted folder cannot be renamed",
        LOG_INSIDE,
        "mv .cueline aside && echo GOT IT; mv aside .cueline",
    ),
    Attack("read another workspace", MOUNTS, RULES, "cat $OUTSIDE/secret.txt && echo GOT IT"),
    Attack("write outside", MOUNTS, RULES, "echo planted >$OUTSIDE/written && echo GOT IT"),
    Attack(
        "write into the system",
        "the system is mounted read-only",
        "its rule grants no change",
        "touch /usr/local/lib/cueline-planted && rm /usr/local/lib/cueline-planted && echo GOT IT",
        "test -w /usr/local/lib",
    ),
    Attack(
        "read through a symbolic link to a file outside",
        MOUNTS,
        RULES,
        "ln -sf $OUTSIDE/secret.txt link; cat link && echo GOT IT",
    ),
    Attack(
        "make a hard link to a file outside",
        MOUNTS,
        RULES,
        "ln $OUTSIDE/secret.txt hard && cat hard && echo GOT IT; rm -f hard",
    ),
    Attack(
        "read the environment of process 1",
        "process 1 is bubblewrap, with the environment of the command",
        DOMAIN,
        "test -n \"$(tr -d '\\0' </proc/1/environ)\" && "
        "test $(tr '\\0' '\\n' </proc/1/environ | grep -c ^VICTIM=) = 0 && echo GOT IT",
        "cat /proc/1/environ >/dev/null",
    ),
    Attack(
        "reach files by the root of another process",
        PIDS,
        DOMAIN,
        "cat /proc/[0-9]*/root$OUTSIDE/secret.txt 2>/dev/null | grep -q hidden && echo GOT IT",
    ),
    Attack(
        "connect to a socket of Ray in `/tmp/ray`",
        "an empty private `/tmp`",
        SOCKETS,
        CONNECT.format(family="AF_UNIX", address='os.environ["RAYLET"]'),
    ),
    Attack(
        "ask the ssh-agent",
        "its socket is not mounted, and its variable is not set",
        SOCKETS,
        CONNECT.format(family="AF_UNIX", address='os.environ["SSH_AUTH_SOCK"]'),
    ),
    Attack(
        "connect to an abstract socket of another process",
        NETWORK,
        SOCKETS,
        CONNECT.format(family="AF_UNIX", address='"\\0" + os.environ["ABSTRACT"]'),
    ),
    Attack(
        "connect to a port of Ray on the loopback interface",
        NETWORK,
        SOCKETS,
        CONNECT.format(family="AF_INET", address='("127.0.0.1", int(os.environ["PORT"]))'),
    ),
    Attack(
        "reach the metadata service, 169.254.169.254",
        NETWORK,
        SOCKETS,
        CONNECT.replace("socket.{family}", "socket.AF_INET, socket.SOCK_DGRAM").format(
            address='("169.254.169.254", 80)'
        ),
        "grep -q '^[^ ]*[[:space:]]00000000' /proc/net/route",
    ),
    Attack(
        "reach a host that is not in the list of allowed ones",
        "the proxy, with a 403 that says why",
        HOSTS,
        BY_PROXY.format(target='("127.0.0.1", int(os.environ["PORT"]))'),
        kind="hosts",
    ),
    Attack(
        "reach the loopback interface by an allowed name that means it (DNS rebinding)",
        RESOLVED,
        HOSTS,
        BY_PROXY.format(target='("localhost", int(os.environ["PORT"]))'),
        kind="hosts",
    ),
    Attack(
        "reach a private address of this machine by an allowed name",
        RESOLVED,
        HOSTS,
        BY_PROXY.format(target='("167772161", 80)'),
        "timeout 3 bash -c '</dev/tcp/10.0.0.1/80'",
        kind="hosts",
    ),
    Attack(
        "reach the metadata service by an allowed name",
        RESOLVED,
        HOSTS,
        BY_PROXY.format(target='("2852039166", 80)'),
        "timeout 3 bash -c '</dev/tcp/169.254.169.254/80'",
        kind="hosts",
    ),
    Attack(
        "pass by the proxy, with a socket of its own",
        NETWORK,
        HOSTS,
        CONNECT.format(family="AF_INET", address='("127.0.0.1", int(os.environ["PORT"]))'),
        kind="hosts",
    ),
    Attack("trace a process of the runner's user", PIDS, CALLS, PYTHON.format(TRACE)),
    Attack("send a signal to it", PIDS, SIGNALS, "kill -0 $VICTIM && echo GOT IT"),
    Attack("set a limit of it", PIDS, CALLS, PYTHON.format(LIMIT)),
    Attack(
        "see its arguments",
        PIDS,
        NOT_HELD + "programs need `/proc`, which shows them",
        "grep -q 1000 /proc/$VICTIM/cmdline && echo GOT IT",
    ),
    Attack("attach to its shared memory", IPC, CALLS, PYTHON.format(ATTACH)),
    Attack(
        "send to a socket by a socket of a pair",
        "an empty private `/tmp`",
        CALLS,
        PYTHON.format(SEND),
    ),
    Attack(
        "change the mode of a file outside",
        MOUNTS,
        NOT_HELD + "Landlock has no right for modes and times",
        "chmod 600 $OUTSIDE/secret.txt && echo GOT IT",
    ),
    Attack("make a user namespace", FILTER, CALLS, "unshare --user true && echo GOT IT"),
    Attack(
        "mount a file system",
        "no capability, and " + FILTER,
        CALLS,
        "mkdir -p m; mount -t tmpfs none m && umount m && echo GOT IT",
        "test $(id -u) = 0",
    ),
    Attack(
        "use io_uring, which passes by filters",
        FILTER,
        CALLS,
        SYSTEM_CALL.format(arguments="425, 1, 0"),
        "! grep -q 2 /proc/sys/kernel/io_uring_disabled",
    ),
    Attack(
        "use the kernel's key rings", FILTER, CALLS, SYSTEM_CALL.format(arguments="250, 0, -3, 0")
    ),
    Attack(
        "load a program into the kernel (bpf)",
        FILTER,
        CALLS,
        SYSTEM_CALL.format(arguments="321, 0, 0, 0"),
    ),
    Attack(
        "leave a program behind that runs as root (setuid)",
        FILTER + "; in the isolation such programs have no effect, by `no_new_privs`",
        CALLS,
        "cp /bin/true program; chmod u+s program && echo GOT IT; rm program",
    ),
    Attack(
        "plant a git hook",
        "`.git/hooks` and `.git/config` are mounted read-only",
        GIT,
        "echo planted >.git/hooks/post-checkout && echo GOT IT; rm -f .git/hooks/post-checkout",
    ),
    Attack(
        "name a program in git's configuration",
        "the same",
        GIT,
        "git config core.fsmonitor ./planted && echo GOT IT; git config --unset core.fsmonitor",
    ),
    Attack(
        "put another `.git` in its place",
        "a mounted folder cannot be renamed",
        GIT,
        "mv .git aside && echo GOT IT; mv aside .git",
    ),
    Attack(
        "start 700 processes",
        "a limit: RLIMIT_NPROC, for root `pid_max` of a process namespace",
        COUNTED,
        PYTHON.format(FORKS),
    ),
    Attack(
        "take more memory than allowed",
        "a limit for each process: RLIMIT_DATA",
        "the same",
        f'python3 -c "{MEMORY}"',
    ),
    Attack(
        "fill the private `/tmp`",
        "the size of the file system, which is in memory",
        NOT_HELD + "its place, in `TMPDIR`, is on the disk",
        PYTHON.format(FILL),
    ),
    Attack(
        "write a file that is larger than allowed",
        "a limit: RLIMIT_FSIZE",
        "the same",
        "head -c 40M /dev/zero >large && echo GOT IT; rm large",
    ),
    Attack(
        "open more files than allowed",
        "a limit: RLIMIT_NOFILE",
        "the same",
        PYTHON.format(
            "import os\nfor _ in range(200): os.open('/dev/null', os.O_RDONLY)\nprint('GOT IT')"
        ),
    ),
)

OUTLIVES = (
    "outlive the runner",
    "the guardian, and the end of the process namespace",
    "the guardian",
)
SETTINGS = (
    "plant a `cueline.toml` that allows more at the next start",
    "a found file does not count before `cueline trust`",
    "the same",
)


HELD_BY_BWRAP = "only bubblewrap holds changes"
HELD_LINK = (
    "write outside by a symbolic link that waits for a yes",
    "[held changes](guides/tools.md#changes-that-wait-for-a-yes) are written without following one",
    HELD_BY_BWRAP,
)
HELD_HOOK = (
    "plant a git hook or a `cueline.toml` that waits for a yes",
    "a person is asked, whatever is allowed",
    HELD_BY_BWRAP,
)
HELD_BACK = {"put another `.git` in its place"}
"""The attempts that succeed on an overlay, and wait for a yes."""


def table() -> str:
    """Return the attempts as a table in Markdown."""
    rows = [(each.name, each.refused_by, each.landlock) for each in ATTACKS]
    lines = [
        f"| {' | '.join(each)} |" for each in (*rows, OUTLIVES, SETTINGS, HELD_LINK, HELD_HOOK)
    ]
    head = ["| attempt | refused by bubblewrap | by Landlock |", "| --- | --- | --- |"]
    return "\n".join([*head, *lines])


if __name__ == "__main__":
    print(table())  # noqa: T201 - it is for the page
