"""Sandboxes of this machine pass the contract; snapshots and forks of their workspace."""

from pathlib import Path

import pytest

from cueline.actors.sandbox_port import NAME_LABEL
from cueline.events.sandbox import SandboxSpec
from cueline.sandboxes.local import LocalBackend
from cueline.testing.sandbox_contract import SandboxContract


class TestLocalContract(SandboxContract):
    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        folder = tmp_path / "workspace"
        folder.mkdir()
        (folder / "there").write_text("before")
        return folder

    @pytest.fixture
    def backend(self, tmp_path: Path) -> LocalBackend:
        return LocalBackend({"XDG_STATE_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"})

    @pytest.fixture
    def spec(self, workspace: Path) -> SandboxSpec:
        return SandboxSpec(backend="local", workspace=str(workspace))

    def test_what_a_command_changes_is_not_in_the_workspace(
        self, backend: LocalBackend, place: str, workspace: Path
    ) -> None:
        backend.put(place, "there", b"after")
        backend.put(place, "new", b"")
        assert backend.get(place, "there") == b"after"
        assert (workspace / "there").read_text() == "before"
        assert not (workspace / "new").exists()

    def test_a_fork_has_the_files_of_a_snapshot(
        self, backend: LocalBackend, place: str, labels: dict[str, str]
    ) -> None:
        backend.put(place, "turn", b"1")
        assert backend.snapshot(place) == 1
        assert backend.snapshot(place) == 1  # nothing was written
        backend.put(place, "turn", b"2")
        backend.exec(place, ["rm", "there"], timeout_seconds=10)
        assert backend.snapshot(place) == 2
        backend.put(place, "turn", b"3")
        forks = [
            backend.fork(place, layers, {**labels, NAME_LABEL: f"sandbox-default/fork{layers}"})
            for layers in (0, 1, 2)
        ]
        with pytest.raises(FileNotFoundError):
            backend.get(forks[0], "turn")
        assert backend.get(forks[1], "turn") == b"1"
        assert backend.get(forks[1], "there") == b"before"
        assert backend.get(forks[2], "turn") == b"2"
        with pytest.raises(FileNotFoundError):
            backend.get(forks[2], "there")
        backend.put(forks[1], "turn", b"other")
        assert backend.get(place, "turn") == b"3"
