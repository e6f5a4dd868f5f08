"""Commands below Landlock: what is proved, granted and refused by name."""

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import pytest

from cueline.errors import ConfigError, ToolFailedError
from cueline.events.agent_parts import Isolation, IsolationLimits
from cueline.isolation import landlock
from cueline.isolation.bwrap import Machine
from cueline.isolation.ladder import rung
from cueline.isolation.landlock import check_grants, restricted
from cueline.isolation.limits import ProcessLimits
from cueline.isolation.sandbox import sandbox
from cueline.isolation.seccomp import program
from cueline.tools.shell import run_command, run_program

NOBODY = 65534
LANDLOCK = Isolation(kind="landlock")
pytestmark = pytest.mark.skipif(
    not rung(kind="landlock").kind, reason="Landlock isolates nothing here"
)


@pytest.fixture
def said(context):
    def run(command, **fields):
        isolation = Isolation(kind="landlock", **fields)
        return run_command.run({"command": command}, context(isolation)).content.decode()

    return run


def test_a_restriction_that_does_not_hold_starts_nothing(tmp_path, said, monkeypatch):
    """The proof opens a folder that is granted, which no restriction refuses."""
    monkeypatch.setattr(landlock, "_FORBIDDEN", "/usr")

    with pytest.raises(
        ToolFailedError, match=r"did not run.*Landlock does not hold: /usr"
    ) as failed:
        said("touch ran")

    assert "tool_error" == failed.value.kind
    assert not (tmp_path / "ran").exists()


def test_a_filter_that_does_not_hold_starts_nothing(tmp_path, said, monkeypatch):
    monkeypatch.setattr(landlock, "program", lambda **_: program())

    with pytest.raises(ToolFailedError, match=r"did not run.*the filter of system calls does not"):
        said("touch ran")

    assert not (tmp_path / "ran").exists()


def test_a_refused_restriction_starts_nothing(tmp_path, said, monkeypatch):
    monkeypatch.setattr(landlock, "_RESTRICT_SELF", 9999)

    with pytest.raises(ToolFailedError, match=r"did not run.*Function not implemented"):
        said("touch ran")

    assert not (tmp_path / "ran").exists()


def test_a_program_that_is_started_without_the_restriction_does_not_run(tmp_path):
    with sandbox(["touch", "ran"], isolation=LANDLOCK, environment={}, workspace=tmp_path) as box:
        done = subprocess.run(box.argv, cwd=tmp_path, capture_output=True, check=False)
        began = box.began(done.returncode)

    assert b"nothing restricts it\n" == done.stderr
    assert not began
    assert not (tmp_path / "ran").exists()


def test_a_command_that_fails_by_itself_has_run(said):
    assert "[exit status 1]" == said("exit 1")
    assert "[exit status 127]" == said("exec no-such 2>/dev/null")
    assert "[killed by SIGKILL]" == said("kill -9 $$")


def test_a_program_of_a_procedure_gets_its_input_and_its_end_has_a_reason(context):
    box = context(LANDLOCK)

    output = run_program.run({"command": ["cat"], "parameters": {"a": 1}}, box)

    assert b'{"a": 1}' == output.content
    with pytest.raises(ToolFailedError, match="no-such cannot be run, exit status 127"):
        run_program.run({"command": ["no-such"], "parameters": {}}, box)


def test_home_and_tmpdir_are_a_private_folder_that_vanishes(said):
    private, _, rest = said("cd && pwd && touch ~/a && test $HOME = $TMPDIR && mktemp").partition(
        "\n"
    )

    assert rest.startswith(private)
    assert not Path(private).exists()
    assert Path(private).parent == Path(tempfile.gettempdir())


def test_granted_folders_can_be_read_or_written(tmp_path_factory, said):
    inputs, outputs = (tmp_path_factory.mktemp(name) for name in ("inputs", "outputs"))
    (inputs / "a").write_text("given")
    command = f"cat {inputs}/a; cp {inputs}/a {outputs}/b; mv {outputs}/b {outputs}/c"

    done = said(
        f"{command}; touch {inputs}/d || echo refused", read=[str(inputs)], write=[str(outputs)]
    )

    assert {"given", "refused"} <= {*done.replace("given", "given\n").split("\n")}
    assert ["c"] == [each.name for each in outputs.iterdir()]


@pytest.mark.parametrize(
    ("made", "fields", "hidden"),
    [
        ("work/data", {"read": "work/data"}, ""),
        ("work/.cueline", {}, ""),
        ("work", {}, "work/logs/log.db"),
        ("home/.ssh", {"write": "home"}, ""),
        ("work/python", {}, ""),
    ],
    ids=["a read-only folder", "a log", "a log to come", "a key", "this Python"],
)
def test_what_only_a_mount_could_keep_from_a_granted_folder_is_refused_by_name(
    tmp_path, monkeypatch, made, fields, hidden
):
    for each in (made, "work", "home"):
        (tmp_path / each).mkdir(parents=True, exist_ok=True)
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "work/python"))
    folders = ("/usr", *map(str, tmp_path.glob("work/python")))
    machine = Machine({}, folders, str(tmp_path / "home"))
    isolation = Isolation(**{key: [str(tmp_path / each)] for key, each in fields.items()})
    files = [tmp_path / hidden] if hidden else []

    with pytest.raises(ConfigError, match="Landlock cannot keep commands from it") as refused:
        check_grants(isolation, machine, tmp_path / "work", files)

    assert f"{tmp_path / (hidden or made)} is in a granted folder" in refused.value.reason


def test_root_has_no_capability_inside(said):
    assert {"0000000000000000"} == {
        *said("sed -n 's/^Cap[IPEA].*\\t//p' /proc/self/status").splitlines()[:-1]
    }


def test_without_a_network_no_socket_can_be_made(said):
    families = ["AF_INET", "AF_INET6", "AF_UNIX", "AF_NETLINK", "AF_PACKET"]
    for family in families:
        assert "not permitted" in said(
            f"python3 -c 'import socket as s; s.socket(s.{family})' 2>&1"
        )


TCP = """\
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
print("connected")
"""


def test_with_a_network_there_are_sockets_but_none_of_this_machine(said):
    done = said(f"python3 - <<'END' 2>&1\n{TCP}socket.socket(socket.AF_UNIX)\nEND", network=True)

    assert "connected" in done
    assert "Operation not permitted" in done


def test_landlock_refuses_tcp_also_without_the_filter(said, monkeypatch):
    lax = partial(program, namespaces=False, network=True)
    monkeypatch.setattr(landlock, "program", lambda **_: lax())

    assert "PermissionError: [Errno 13]" in said(f"python3 - <<'END' 2>&1\n{TCP}END")


def test_commands_talk_by_pipes_and_pairs_of_sockets(said):
    pair = "import socket; a, b = socket.socketpair(); a.send(b'sent'); print(b.recv(4))"

    assert "b'sent'" in said(f'python3 -c "{pair}" | cat')


@pytest.fixture
def as_nobody():
    """Run a command below Landlock as another user than root, who has no capability to lose."""
    if os.geteuid():
        pytest.skip("only root can become another user")

    workspace = Path(tempfile.mkdtemp())
    workspace.chmod(0o777)

    def run(*command, **limits):
        isolation = Isolation(limits=IsolationLimits(**limits))
        bounds = ProcessLimits.of(isolation.limits, namespaces=False)
        with restricted(command, isolation, {"PATH": "/usr/bin"}, workspace) as box:

            def before_exec():
                bounds.before_exec()
                box.restrict()

            return subprocess.run(
                box.argv,
                env=box.environment,
                preexec_fn=before_exec,
                user=NOBODY,
                group=NOBODY,
                extra_groups=[],
                capture_output=True,
                check=False,
            )

    yield run
    workspace.rmdir()


@pytest.mark.parametrize(("processes", "succeeds"), [(16, False), (1000, True)])
def test_the_processes_of_another_user_than_root_are_limited(as_nobody, processes, succeeds):
    done = as_nobody("perl", "-e", FORKS, processes=processes)

    assert succeeds == (b"GOT IT" in done.stdout), done.stderr


def test_the_environment_of_a_process_of_the_same_user_cannot_be_read(as_nobody):
    planted = {"KEY": "planted"}
    with subprocess.Popen(["sleep", "1000"], env=planted, user=NOBODY, group=NOBODY) as neighbour:
        try:
            done = as_nobody("cat", f"/proc/{neighbour.pid}/environ")
        finally:
            neighbour.kill()

    assert b"" == done.stdout
    assert b"Permission denied" in done.stderr


FORKS = """
my @made;
END { kill "KILL", @made }
for (1..800) {
    my $child = fork;
    die "no process" unless defined $child;
    sleep 1000 unless $child;
    push @made, $child;
}
print "GOT IT";
"""
