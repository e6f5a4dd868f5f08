"""Sandboxes that are git worktrees pass the contract; what stays in the repository."""

from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path
from shutil import rmtree
from uuid import uuid4

import pytest

from cueline.actors.sandbox_port import LOG_LABEL, NAME_LABEL, SESSION_LABEL
from cueline.errors import SandboxError
from cueline.events.sandbox import SandboxSpec
from cueline.sandboxes.local import locked
from cueline.sandboxes.worktree import WorktreeBackend
from cueline.testing.sandbox_contract import SandboxContract
from tests.sandboxes.repository import git, repository
from tests.sandboxes.session import works_in


class TestWorktreeContract(SandboxContract):
    @pytest.fixture
    def workspace(self, tmp_path: Path) -> Path:
        return repository(tmp_path / "workspace")

    @pytest.fixture
    def backend(self, tmp_path: Path) -> WorktreeBackend:
        return WorktreeBackend({"XDG_STATE_HOME": str(tmp_path / "state"), "PATH": "/usr/bin:/bin"})

    @pytest.fixture
    def spec(self, workspace: Path) -> SandboxSpec:
        return SandboxSpec(backend="worktree", workspace=str(workspace))

    @pytest.fixture
    def labels(self):
        name = f"sandbox-default/{uuid4().hex}"
        return {LOG_LABEL: uuid4().hex, NAME_LABEL: name, SESSION_LABEL: "session-default/mend"}

    def run(self, backend, place, command):
        ended = backend.exec(place, ["/bin/sh", "-c", command], timeout_seconds=30)
        return ended.exit_code, ended.output.decode().strip()

    def test_what_it_leaves_is_committed_on_its_branch(self, backend, place, workspace):
        backend.put(place, "new", b"mine")
        backend.put(place, ".gitignore", b"built\n")
        backend.put(place, "built", b"not kept")
        author = "git -c user.name=B -c user.email=b@example.org"
        assert (0, "") == self.run(
            backend, place, f"git add new && {author} commit -qm 'Make it new'"
        )
        backend.stop(place)
        backend.delete(place)
        branch = f"cueline/mend-{place[:6]}"

        assert (workspace / "there").read_text() == "before"
        assert not (workspace / "new").exists()
        told = git(workspace, "log", "--format=%an %s", branch).splitlines()
        assert ["cueline Keep what mend left", "B Make it new", "A Begin"] == told
        assert "mine" == git(workspace, "show", f"{branch}:new")
        assert "built" not in git(workspace, "ls-tree", "--name-only", branch).splitlines()
        assert 1 == len(git(workspace, "worktree", "list").splitlines())
        backend.delete(place)

    def test_what_a_command_commits_on_no_branch_gets_one(self, backend, place, workspace):
        backend.put(place, "new", b"mine")
        self.run(backend, place, "git checkout --quiet --detach")
        backend.delete(place)
        branch = f"cueline/mend-{place[:6]}"

        refs = git(workspace, "for-each-ref", "--format=%(refname:short)", "refs/heads").split()
        assert [f"{branch}-detached", "main"] == refs
        assert "mine" == git(workspace, "show", f"{branch}-detached:new")

    def test_one_begins_after_another_has_begun(self, backend, spec, labels, workspace):
        half = workspace / ".git" / "worktrees" / "half"
        with ThreadPoolExecutor() as pool:
            with locked(workspace / ".git"):
                half.mkdir(parents=True)
                (half / "commondir").touch()
                made = pool.submit(backend.create, spec, labels, {})
                assert not wait([made], timeout=0.5).done
                rmtree(half)
            backend.delete(made.result())

    def test_worktrees_of_others_stay_also_if_their_disk_is_away(
        self, backend, spec, labels, place, tmp_path
    ):
        git(spec.workspace, "worktree", "add", "--quiet", str(tmp_path / "other"))
        (tmp_path / "other").rename(tmp_path / "away")
        other = backend.create(spec, {**labels, NAME_LABEL: "sandbox-default/other"}, {})
        backend.delete(other)
        (tmp_path / "away").rename(tmp_path / "other")

        assert not git(tmp_path / "other", "status", "--short")

    def test_variables_of_git_around_this_program_name_no_other_repository(
        self, backend, spec, labels, tmp_path, monkeypatch
    ):
        monkeypatch.setenv("GIT_DIR", str(repository(tmp_path / "other") / ".git"))
        place = backend.create(spec, labels, {})
        monkeypatch.delenv("GIT_DIR")
        assert 2 == len(git(spec.workspace, "worktree", "list").splitlines())
        backend.delete(place)

    def test_a_branch_without_a_change_is_deleted(self, backend, place, workspace):
        backend.snapshot(place, "1.0")
        backend.delete(place)
        assert "refs/heads/main" == git(workspace, "for-each-ref", "--format=%(refname)")

    def test_a_fork_has_the_files_of_a_snapshot(self, backend, place, labels, workspace):
        backend.put(place, "turn", b"1")
        backend.snapshot(place, "1.0")
        self.run(backend, place, "git add . && git -c user.name=B -c user.email=b commit -qm One")
        self.run(backend, place, "rm there; echo 2 > turn")
        backend.snapshot(place, "2.0")
        backend.put(place, "turn", b"3")

        forks = [
            backend.fork(place, name, {**labels, NAME_LABEL: f"sandbox-default/f{name}"})
            for name in ("1.0", "2.0")
        ]

        assert (b"1", b"2\n") == tuple(backend.get(each, "turn") for each in forks)
        assert (0, "?? turn") == self.run(backend, forks[0], "git status --short")
        assert (0, "D there\n M turn") == self.run(backend, forks[1], "git status --short")
        assert (0, "One\nBegin") == self.run(backend, forks[1], "git log --format=%s")
        with pytest.raises(SandboxError, match=r"no snapshot of the call 9\.9"):
            backend.fork(place, "9.9", labels)

    # Git would run what they name, outside of the sandbox.
    @pytest.mark.parametrize(
        "planted", ["hooks/post-commit", "config", "commondir", "config.worktree", "info/x"]
    )
    def test_a_command_plants_nothing_in_the_repository(self, backend, place, workspace, planted):
        code, told = self.run(backend, place, f"echo mine >> {workspace}/.git/{planted}")
        assert code
        assert "Read-only file system" in told or "nonexistent" in told
        assert not git(workspace, "status", "--short")

    def test_a_snapshot_that_was_cut_off_stops_no_later_one(self, backend, place):
        backend.snapshot(place, "1.0")
        self.run(backend, place, 'touch "$(git rev-parse --git-path index.snapshot).lock"')
        backend.snapshot(place, "2.0")

    def test_a_worktree_that_git_cannot_commit_keeps_its_files(self, backend, place):
        backend.put(place, "new", b"mine")
        backend.put(place, ".git", b"broken")
        with pytest.raises(SandboxError, match=r"git failed in .*: fatal: invalid gitfile"):
            backend.delete(place)
        assert backend.get(place, "new") == b"mine"
        assert (0, "") == self.run(backend, place, "rm .git")

    def test_a_repetition_after_a_crash_goes_on(self, backend, spec, labels, place, workspace):
        folder = backend._root / place
        (folder / "about.json").unlink()
        assert place == backend.create(spec, labels, {})
        assert backend.get(place, "there") == b"before"

    @pytest.mark.parametrize("made", [False, True])
    def test_a_workspace_without_a_repository_is_refused(self, backend, labels, tmp_path, made):
        spec = SandboxSpec(backend="worktree", workspace=str(tmp_path) if made else "")
        why = "is not the folder of a git repository: name that folder, or run `git init` there"
        with pytest.raises(SandboxError, match=why):
            backend.create(spec, labels, {})


async def test_a_session_works_in_a_worktree(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    repository(tmp_path / "work")

    await works_in("worktree", tmp_path)

    (branch,) = git(
        tmp_path / "work", "branch", "--list", "cueline/*", "--format=%(refname)"
    ).split()
    assert "two" == git(tmp_path / "work", "show", f"{branch}:made")
