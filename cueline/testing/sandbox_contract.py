"""The contract that every back-end of sandboxes has to pass.

Subclass `SandboxContract`, provide a `backend` fixture, and run pytest.
"""

import shlex
from collections.abc import Iterator
from uuid import uuid4

import pytest

from cueline.actors.sandbox_port import LOG_LABEL, NAME_LABEL, SandboxBackend
from cueline.errors import SandboxGoneError
from cueline.events.sandbox import SandboxSpec

_SECONDS = 30.0


class SandboxContract:
    """Every rule of `SandboxBackend`, as a test."""

    @pytest.fixture
    def backend(self) -> SandboxBackend:
        """Return the back-end."""
        raise NotImplementedError

    @pytest.fixture
    def spec(self) -> SandboxSpec:
        """Return what a sandbox of this back-end has."""
        raise NotImplementedError

    @pytest.fixture
    def labels(self) -> dict[str, str]:
        """Return the labels of a sandbox that no other test has."""
        return {LOG_LABEL: uuid4().hex, NAME_LABEL: f"sandbox-default/{uuid4().hex}"}

    @pytest.fixture
    def place(
        self, backend: SandboxBackend, spec: SandboxSpec, labels: dict[str, str]
    ) -> Iterator[str]:
        """Yield a started sandbox, whose commands have the variable `GREETING`."""
        place = backend.create(spec, labels, {"GREETING": "hello there"})
        yield place
        backend.delete(place)

    def test_a_command_runs_to_its_end(self, backend: SandboxBackend, place: str) -> None:
        ended = backend.exec(
            place, _shell("echo out; echo err >&2; exit 3"), timeout_seconds=_SECONDS
        )
        assert ended.exit_code == 3
        assert sorted(ended.output.decode().split()) == ["err", "out"]
        assert ended.size == len(ended.output)
        assert not ended.timed_out

    def test_arguments_are_passed_as_they_are(self, backend: SandboxBackend, place: str) -> None:
        odd = ["a b", "$HOME", "'", '"', "*", "", "é\n", "-n"]
        command = ["/bin/sh", "-c", 'for each; do printf "%s|" "$each"; done', "sh", *odd]
        ended = backend.exec(place, command, timeout_seconds=_SECONDS)
        assert ended.output.decode() == "".join(f"{each}|" for each in odd)

    def test_a_command_reads_its_input(self, backend: SandboxBackend, place: str) -> None:
        given = bytes(range(256)) * 400
        ended = backend.exec(place, ["cat"], stdin=given, timeout_seconds=_SECONDS)
        assert ended.output == given
        assert backend.exec(place, ["cat"], timeout_seconds=_SECONDS).output == b""

    def test_commands_have_the_environment_of_the_sandbox_and_their_own(
        self, backend: SandboxBackend, place: str
    ) -> None:
        """003-043, 003-034: at creation for all, at the call for one."""
        told = _shell('echo "$GREETING; $TOKEN"')
        own = {"TOKEN": "for one $call"}
        ended = backend.exec(place, told, environment=own, timeout_seconds=_SECONDS)
        assert ended.output == b"hello there; for one $call\n"
        ended = backend.exec(place, told, timeout_seconds=_SECONDS)
        assert ended.output == b"hello there; \n"

    def test_a_command_that_takes_too_long_is_killed(
        self, backend: SandboxBackend, place: str
    ) -> None:
        length = str(uuid4().int)[:9]
        late = _shell(f"echo begun; sleep {length} & sleep {length}")
        ended = backend.exec(place, late, timeout_seconds=1)
        assert ended.timed_out
        assert ended.exit_code != 0
        seen = f"cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c '[s]leep {length}'"
        assert backend.exec(place, _shell(seen), timeout_seconds=_SECONDS).output.strip() == b"0"

    def test_files_are_written_and_read(self, backend: SandboxBackend, place: str) -> None:
        content = bytes(range(256)) * 1000
        backend.put(place, "deep/er/a file", content)
        assert backend.get(place, "deep/er/a file") == content
        seen = backend.exec(place, ["wc", "-c", "deep/er/a file"], timeout_seconds=_SECONDS)
        assert seen.output.split()[0] == str(len(content)).encode()
        backend.put(place, "deep/er/a file", b"")
        assert backend.get(place, "deep/er/a file") == b""

    def test_a_file_that_is_missing_is_not_read(self, backend: SandboxBackend, place: str) -> None:
        with pytest.raises(FileNotFoundError):
            backend.get(place, "missing")

    def test_a_stopped_sandbox_keeps_its_files(
        self, backend: SandboxBackend, place: str, labels: dict[str, str]
    ) -> None:
        """003-008, 003-030, 003-031: stop and start keep the disk."""
        backend.put(place, "kept", b"yes")
        backend.stop(place)
        assert backend.state(place) == "stopped"
        assert [each.state for each in backend.find(labels)] == ["stopped"]
        backend.stop(place)
        backend.start(place)
        backend.start(place)
        assert backend.state(place) == "started"
        backend.keep_alive(place)
        assert backend.get(place, "kept") == b"yes"
        told = backend.exec(place, _shell("echo $GREETING"), timeout_seconds=_SECONDS)
        assert told.output == b"hello there\n"

    def test_a_stop_ends_all_processes(self, backend: SandboxBackend, place: str) -> None:
        """003-036: a stopped sandbox takes no processor and no memory."""
        again = "nohup sh -c 'while :; do date +%s%N > beat; sleep 0.1; done' >/dev/null 2>&1 &"
        backend.exec(place, _shell(again), timeout_seconds=_SECONDS)
        backend.stop(place)
        backend.start(place)
        running = _shell(
            "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' ' ' | grep -c 'date +%s%N > bea[t]'"
        )
        assert backend.exec(place, running, timeout_seconds=_SECONDS).output.strip() == b"0"

    def test_a_creation_that_is_repeated_makes_no_second_sandbox(
        self, backend: SandboxBackend, spec: SandboxSpec, place: str, labels: dict[str, str]
    ) -> None:
        """003-045: an answer that was lost leaves no sandbox behind."""
        backend.put(place, "mine", b"")
        backend.stop(place)
        assert backend.create(spec, labels, {"GREETING": "hello there"}) == place
        assert backend.state(place) == "started"
        assert backend.get(place, "mine") == b""
        assert [each.place for each in backend.find(labels)] == [place]

    def test_sandboxes_are_found_by_their_labels(
        self, backend: SandboxBackend, spec: SandboxSpec, place: str, labels: dict[str, str]
    ) -> None:
        """003-041."""
        log = {LOG_LABEL: labels[LOG_LABEL]}
        second = backend.create(spec, {**log, NAME_LABEL: f"sandbox-default/{uuid4().hex}"}, {})
        try:
            assert {each.place for each in backend.find(log)} == {place, second}
            [found] = backend.find(labels)
            assert found.place == place
            assert labels.items() <= found.labels.items()
            assert not backend.find({LOG_LABEL: "of another log"})
        finally:
            backend.delete(second)

    def test_what_one_sandbox_writes_another_does_not_see(
        self, backend: SandboxBackend, spec: SandboxSpec, place: str, labels: dict[str, str]
    ) -> None:
        other = {**labels, NAME_LABEL: f"sandbox-default/{uuid4().hex}"}
        second = backend.create(spec, other, {})
        try:
            backend.put(place, "mine", b"")
            with pytest.raises(FileNotFoundError):
                backend.get(second, "mine")
        finally:
            backend.delete(second)

    def test_a_deleted_sandbox_is_gone(
        self, backend: SandboxBackend, place: str, labels: dict[str, str]
    ) -> None:
        backend.delete(place)
        backend.delete(place)
        assert backend.state(place) == "gone"
        assert not [each for each in backend.find(labels) if each.state != "gone"]
        for act in (backend.start, backend.stop, backend.keep_alive):
            with pytest.raises(SandboxGoneError):
                act(place)
        with pytest.raises(SandboxGoneError):
            backend.exec(place, ["true"], timeout_seconds=_SECONDS)
        with pytest.raises(SandboxGoneError):
            backend.get(place, "any")

    def test_a_volume_outlives_its_sandbox_and_is_shared(
        self, backend: SandboxBackend, spec: SandboxSpec, labels: dict[str, str]
    ) -> None:
        """003-037 to 003-040: it is made when it is missing, and is at /data."""
        name = f"cache-{uuid4().hex[:8]}"
        with_volume = spec.model_copy(update={"volume": name})
        backend.volume(name)
        backend.volume(name)
        for word in ("first", "second"):
            named = {**labels, NAME_LABEL: f"sandbox-default/{uuid4().hex}"}
            place = backend.create(with_volume, named, {})
            try:
                said = f"touch /data/{shlex.quote(word)}; ls /data"
                seen = backend.exec(place, _shell(said), timeout_seconds=_SECONDS).output.split()
            finally:
                backend.delete(place)
        assert seen == [b"first", b"second"]


def _shell(script: str) -> list[str]:
    return ["/bin/sh", "-c", script]
