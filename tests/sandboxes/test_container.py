"""Containers pass the contract, on a real Podman."""

import time

import pytest

from cueline.actors.sandbox_port import LOG_LABEL, NAME_LABEL
from cueline.errors import SandboxError
from cueline.events.sandbox import SandboxSpec
from cueline.files import LOG_FOLDER
from cueline.sandboxes.container import ContainerBackend
from cueline.testing.sandbox_contract import SandboxContract
from cueline.testing.wait import wait_until
from tests.sandboxes.podman import IMAGE, MISSING, podman
from tests.sandboxes.session import works_in

PROBE = {LOG_LABEL: "none", NAME_LABEL: "sandbox-default/probe.1"}
needs_podman = pytest.mark.skipif(bool(MISSING), reason=f"needs {', '.join(MISSING)}")


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with podman(tmp_path_factory.mktemp("podman")) as address:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("DOCKER_HOST", address)
            backend = ContainerBackend(IMAGE)
            try:
                backend.delete(backend.create(SandboxSpec(backend="container"), PROBE, {}))
            except SandboxError as error:
                pytest.skip(f"podman runs no container here: {error}")
            finally:
                backend._client.close()
        yield address


@pytest.fixture
def backend(address, monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", address)
    backend = ContainerBackend(IMAGE)
    yield backend
    backend._client.close()


@needs_podman
class TestContainerContract(SandboxContract):
    @pytest.fixture
    def backend(self, backend: ContainerBackend) -> ContainerBackend:
        return backend

    @pytest.fixture
    def spec(self) -> SandboxSpec:
        return SandboxSpec(backend="container")

    async def test_a_session_works_in_it(self, backend, tmp_path):
        await works_in("container", tmp_path, image=IMAGE)

    def test_a_workspace_of_this_machine_is_seen_at_its_path(self, backend, spec, labels, tmp_path):
        """The folder of a log in it is hidden."""
        (tmp_path / LOG_FOLDER).mkdir()
        (tmp_path / LOG_FOLDER / "cueline.db").touch()
        shared = spec.model_copy(update={"workspace": str(tmp_path)})
        place = backend.create(shared, labels, {})
        (tmp_path / "there").write_text("from outside")

        seen = backend.exec(
            place, ["/bin/sh", "-c", f"pwd; cat there; ls {LOG_FOLDER}"], timeout_seconds=30
        )
        backend.put(place, "new", b"from inside")
        backend.delete(place)

        assert seen.output.decode() == f"{tmp_path}\nfrom outside"
        assert (tmp_path / "new").read_bytes() == b"from inside"

    def test_processes_that_leave_their_group_are_killed(self, backend, place):
        away = "setsid sleep 400 & until grep -q ^sleep /proc/$!/cmdline; do :; done"
        backend.exec(place, ["/bin/sh", "-c", away], timeout_seconds=30)

        seen = "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' '"
        left = backend.exec(place, ["/bin/sh", "-c", seen], timeout_seconds=30)

        assert b"sleep 400" not in left.output
        assert b"until sleep" in left.output

    def test_output_and_errors_keep_their_order(self, backend, place):
        words = "for i in 1 2 3 4 5; do echo o$i; echo e$i >&2; done"

        ended = backend.exec(place, ["/bin/sh", "-c", words], timeout_seconds=30)

        assert ended.output.decode().split() == [f"{w}{i}" for i in range(1, 6) for w in "oe"]

    @pytest.mark.parametrize(("command", "code"), [("kill -9 $$", 137), ("missing", 127)])
    def test_the_exit_code_is_that_of_a_shell(self, backend, place, command, code):
        ended = backend.exec(place, ["/bin/sh", "-c", command], timeout_seconds=30)

        assert ended.exit_code == code

    def test_a_command_that_takes_too_much_memory_is_killed(self, backend, spec, labels):
        place = backend.create(spec.model_copy(update={"memory_mb": 64}), labels, {})
        much = "x=$(head -c 100000000 /dev/zero | tr '\\0' x)"

        ended = backend.exec(place, ["/bin/sh", "-c", much], timeout_seconds=30)
        backend.delete(place)

        assert ended.exit_code == 137

    def test_a_sandbox_has_no_more_processors_than_its_share(self, backend, spec, labels):
        place = backend.create(spec.model_copy(update={"cpus": 0.5}), labels, {})
        host = backend._client.containers.get(place).attrs["HostConfig"]
        backend.delete(place)

        assert (0.5, 0.5) == (host["NanoCpus"] / 10**9, host["CpuQuota"] / host["CpuPeriod"])

    def test_no_network_is_reached(self, backend, place):
        seen = backend.exec(place, ["ls", "/sys/class/net"], timeout_seconds=30)

        assert seen.output == b"lo\n"

    def test_a_sandbox_that_nobody_uses_stops_by_itself(self, backend, spec, labels):
        """003-032, 003-042: a use begins the time anew."""
        place = backend.create(spec.model_copy(update={"auto_stop_seconds": 1}), labels, {})

        wait_until(lambda: backend.state(place) == "stopped", within=30)
        backend.start(place)
        began = time.monotonic()
        while time.monotonic() < began + 1.5:
            backend.keep_alive(place)

        assert backend.state(place) == "started"
        backend.delete(place)

    def test_an_image_that_is_missing_is_named(self, backend, spec, labels):
        other = spec.model_copy(update={"image": "localhost/other:latest"})

        with pytest.raises(SandboxError, match=r"localhost/other:latest.* `docker pull`"):
            backend.create(other, labels, {})

    def test_a_command_in_a_stopped_sandbox_is_refused(self, backend, place):
        backend.stop(place)

        with pytest.raises(SandboxError, match="the engine refused"):
            backend.exec(place, ["true"], timeout_seconds=30)


def test_without_an_engine_the_error_says_what_to_do(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:1")

    with pytest.raises(SandboxError, match="set DOCKER_HOST"):
        ContainerBackend().find({NAME_LABEL: "any"})
