"""Sandboxes of this machine pass the contract; snapshots and forks of their workspace."""

from pathlib import Path

import pytest

from cueline.actors.sandbox_port import NAME_LABEL
from cueline.errors import SandboxError
from cueline.events.sandbox import SandboxSpec
from cueline.sandboxes.layers import MOST_LAYERS, remove
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
        backend.snapshot(place, "0.0")
        backend.put(place, "turn", b"1")
        backend.snapshot(place, "1.0")
        backend.snapshot(place, "1.1")  # nothing was written
        backend.put(place, "turn", b"2")
        backend.exec(place, ["rm", "there"], timeout_seconds=10)
        backend.snapshot(place, "2.0")
        backend.put(place, "turn", b"3")

        forks = {
            name: backend.fork(place, name, {**labels, NAME_LABEL: f"sandbox-default/f{name}"})
            for name in ("0.0", "1.0", "1.1", "2.0")
        }

        with pytest.raises(FileNotFoundError):
            backend.get(forks["0.0"], "turn")
        assert [b"1", b"1", b"2"] == [
            backend.get(forks[name], "turn") for name in ("1.0", "1.1", "2.0")
        ]
        assert backend.get(forks["1.0"], "there") == b"before"
        with pytest.raises(FileNotFoundError):
            backend.get(forks["2.0"], "there")
        backend.put(forks["1.0"], "turn", b"other")
        backend.delete(place)
        assert backend.get(forks["2.0"], "turn") == b"2"
        with pytest.raises(SandboxError, match=r"no snapshot of the call 9\.9"):
            backend.fork(forks["1.0"], "9.9", labels)

    def test_a_snapshot_that_was_cut_off_leaves_every_file(
        self, backend: LocalBackend, place: str, labels: dict[str, str]
    ) -> None:
        folder = backend._root / place
        backend.put(place, "turn", b"1")
        (folder / "upper").chmod(0o711)
        (folder / "upper").rename(folder / "layers/000001")

        assert backend.get(place, "turn") == b"1"
        assert (folder / "upper").stat().st_mode & 0o7777 == 0o711
        backend.snapshot(place, "1.0")
        fork = backend.fork(place, "1.0", {**labels, NAME_LABEL: "sandbox-default/fork"})
        assert backend.get(fork, "turn") == b"1"

    def test_a_stopped_sandbox_is_not_seen_as_started_while_it_is_deleted(
        self, backend: LocalBackend, place: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A pool would count it beside those that hold all its slots."""
        seen = []

        def remove_and_look(path: Path) -> None:
            remove(path)
            seen.append(backend.state(place))

        monkeypatch.setattr("cueline.sandboxes.local.remove", remove_and_look)
        backend.stop(place)
        backend.delete(place)

        assert "gone" == seen[-1]
        assert {"stopped"} == set(seen[:-1])

    def test_a_sandbox_that_is_deleted_while_others_are_found_is_left_out(
        self,
        backend: LocalBackend,
        place: str,
        labels: dict[str, str],
        spec: SandboxSpec,
        monkeypatch: pytest.MonkeyPatch,
    ) -> None:
        other = backend.create(spec, {**labels, NAME_LABEL: "sandbox-default/other"}, {})
        glob = Path.glob

        def glob_and_delete(folder: Path, pattern: str) -> list[Path]:
            found = list(glob(folder, pattern))
            backend.delete(other)
            return found

        monkeypatch.setattr(Path, "glob", glob_and_delete)
        assert [place] == [each.place for each in backend.find({})]

    def test_many_snapshots_are_merged_and_keep_every_change(
        self, backend: LocalBackend, place: str, labels: dict[str, str], workspace: Path
    ) -> None:
        (workspace / "old").mkdir()
        (workspace / "old" / "file").write_text("of the workspace")
        scripts = [
            "mkdir -p a/b && echo 1 > a/b/c && echo x > gone && rm there",
            "rm -r old && mkdir old && echo new > old/other",
            "rm gone && ln -s a link && echo 2 >> a/b/c",
            "rm -r a/b && echo file > a/b",
            "rm link && mkdir link && echo in > link/in",
            *["echo more >> log"] * (MOST_LAYERS + 4),
        ]
        for number, script in enumerate(scripts):
            ended = backend.exec(place, ["/bin/sh", "-c", script], timeout_seconds=10)
            assert 0 == ended.exit_code, ended.output
            backend.snapshot(place, f"{number}.0")

        look = "find . | sort; cat a/b old/other link/in log; ls old"
        whole = backend.exec(place, ["/bin/sh", "-c", look], timeout_seconds=10).output
        other = {**labels, NAME_LABEL: "sandbox-default/last"}
        fork = backend.fork(place, f"{len(scripts) - 1}.0", other)

        assert b"file\nnew\nin\n" in whole
        for name in (b"./gone", b"./there", b"old/file", b"a/b/c"):
            assert name not in whole
        assert whole.count(b"more") == MOST_LAYERS + 4
        assert whole == backend.exec(fork, ["/bin/sh", "-c", look], timeout_seconds=10).output
        with pytest.raises(SandboxError, match=r"the call 1\.0 are merged into later ones"):
            backend.fork(place, "1.0", labels)
