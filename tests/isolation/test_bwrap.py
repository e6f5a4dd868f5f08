"""The arguments of bubblewrap: what is seen, granted and hidden."""

import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import pytest
from pydantic import ValidationError

from cueline.errors import ConfigError
from cueline.events.agent_parts import Isolation
from cueline.isolation.bwrap import Machine, arguments, private_environment, this_machine
from cueline.isolation.sandbox import sandbox

MACHINE = Machine({"/bin": "usr/bin"}, ("/usr", "/etc/passwd"), "/home/ada")


def build(workspace=None, machine=MACHINE, hidden=(), **isolation):
    return arguments(
        ["true"],
        isolation=Isolation(**isolation),
        machine=machine,
        workspace=workspace,
        hidden=hidden,
    )


def mounted(words, option):
    return [path for before, path in pairwise(words) if before == option]


def test_a_folder_that_is_read_and_holds_the_workspace_leaves_it_writable(tmp_path):
    workspace = tmp_path / "workspace"
    (workspace / "vendor").mkdir(parents=True)

    words = build(workspace, read=[str(tmp_path), str(workspace / "vendor")])

    granted = [each for each in words if each.startswith(str(tmp_path))]
    ways = list(dict.fromkeys(granted))
    assert [str(tmp_path), str(workspace), str(workspace / "vendor")] == ways


def test_all_namespaces_are_new_and_no_capability_is_left(tmp_path):
    words = build(tmp_path)

    assert {"--unshare-all", "--disable-userns", "--die-with-parent", "--new-session"} <= {*words}
    assert ["ALL"] == mounted(words, "--cap-drop")
    assert ["--", "/bin/sh", "-c"] == words[words.index("--") : words.index("--") + 3]
    assert "true" == words[-1]


def test_the_network_is_granted_by_name_only(tmp_path):
    assert "--share-net" not in build(tmp_path)
    assert {"--share-net", "/etc/resolv.conf"} <= {*build(tmp_path, network=True)}


def test_the_workspace_covers_the_private_folders_that_it_is_in(tmp_path):
    words = build(tmp_path)

    assert [str(tmp_path)] == mounted(words, "--bind")
    assert words.index("/home/ada") < words.index(str(tmp_path))
    assert str(tmp_path) == words[words.index("--chdir") + 1]


def test_a_command_without_a_workspace_begins_in_the_private_home():
    assert "/home/ada" == build()[build().index("--chdir") + 1]


def test_the_log_is_hidden_wherever_it_is_in_what_is_granted(tmp_path):
    log = tmp_path / "data" / "log.db"
    (tmp_path / ".cueline").mkdir()
    log.parent.mkdir()
    for path in (log, tmp_path / "data" / "log.db-wal"):
        path.touch()

    words = build(tmp_path, hidden=[log, Path("/nowhere/log.db")])

    assert str(tmp_path / ".cueline") in mounted(words, "--tmpfs")
    covered = [path for before, path in pairwise(words) if before == "/dev/null"]
    assert {str(log), f"{log}-wal"} == {*covered}
    assert "/nowhere/log.db" not in words


def test_secrets_are_hidden_in_a_workspace_that_is_the_home_folder(tmp_path):
    (tmp_path / ".ssh").mkdir()
    (tmp_path / ".netrc").touch()

    words = build(tmp_path, Machine({}, ("/usr",), str(tmp_path)))

    assert str(tmp_path / ".ssh") in mounted(words, "--tmpfs")
    assert str(tmp_path / ".netrc") in words


@pytest.mark.parametrize("path", ["/", "/usr", "/home", "/tmp", "/var", "/etc"])
def test_a_granted_folder_never_shows_the_system_or_other_peoples_folders(path):
    with pytest.raises(ConfigError, match="grant a smaller folder"):
        build(Path(path))


def test_a_grant_through_a_link_that_a_command_could_have_made_is_refused(tmp_path):
    (tmp_path / "link").symlink_to("/root")

    with pytest.raises(ConfigError, match="is a link in a folder that commands can write to"):
        build(tmp_path, read=[str(tmp_path / "link")])


def test_a_planted_link_in_the_place_of_a_repository_is_not_followed(tmp_path):
    outside = tmp_path / "outside"
    workspace = tmp_path / "workspace"
    (outside / "hooks").mkdir(parents=True)
    workspace.mkdir()
    (workspace / ".git").symlink_to(outside)

    assert [str(workspace)] == mounted(build(workspace), "--bind")


def test_a_granted_path_that_is_not_there_is_named(tmp_path):
    with pytest.raises(ConfigError, match=r"/nowhere is not there"):
        build(tmp_path, read=["/nowhere"])


@pytest.mark.parametrize("path", ["data", "~/data", "/data/../etc"])
def test_a_grant_is_an_absolute_path(path):
    with pytest.raises(ValidationError, match="is no absolute path"):
        Isolation(read=[path])


def test_python_and_the_folders_of_path_are_seen_but_no_folder_that_holds_more(tmp_path):
    (tmp_path / "tools/bin").mkdir(parents=True)
    (tmp_path / "env/shims").mkdir(parents=True)
    path = f"{tmp_path}/tools/bin:{tmp_path}/env/shims:{tmp_path}:."

    machine = this_machine({"PATH": path, "HOME": str(tmp_path)})

    assert {str(tmp_path / "tools/bin"), str(tmp_path / "env")} <= {*machine.folders}
    assert str(tmp_path) not in machine.folders
    assert any(Path(sys.prefix).is_relative_to(each) for each in machine.folders)
    assert not {each for each in machine.folders if not each.startswith("/")}


def test_variables_that_lead_outside_are_left_out():
    given = {"SSH_AUTH_SOCK": "/x", "XDG_RUNTIME_DIR": "/y", "TMPDIR": "/z", "LANG": "C"}

    assert {"LANG": "C", "HOME": "/home/ada"} == private_environment(given, MACHINE)


def test_any_program_can_be_run_by_these_arguments(tmp_path):
    """A server that talks over its standard input and output, such as one of MCP."""
    with sandbox(
        ["/bin/sh", "-c", "read line; echo $line $NAME"],
        isolation=Isolation(read=[str(tmp_path)]),
        environment={"PATH": "/usr/bin", "NAME": "value"},
        workspace=None,
    ) as box:
        done = subprocess.run(
            box.argv,
            env=box.environment,
            pass_fds=box.descriptors,
            preexec_fn=box.before_exec,
            input=b"said\n",
            capture_output=True,
            check=True,
        )

    assert b"said value\n" == done.stdout
