"""Sandboxes that are git worktrees: each session has a branch of the workspace's repository.

A command runs in bubblewrap, in the worktree. It changes the worktree, and the objects and branches
of the repository, but no file from which git would take a program: a hook or the configuration. It
could put such a file into the worktree, so also this program runs git there in bubblewrap.
"""

import os
import re
import subprocess
from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any, Final

from cueline.actors.sandbox_port import NAME_LABEL, SESSION_LABEL
from cueline.errors import ConfigError, SandboxError
from cueline.events.agent_parts import Isolation
from cueline.events.sandbox import SandboxSpec
from cueline.events.stream import shown
from cueline.isolation.ladder import check
from cueline.sandboxes.layers import remove
from cueline.sandboxes.local import LocalBackend, locked, output_text

_SECONDS: Final = 600.0
_BASE: Final = "base"
"""The file with the commit from which the branch began."""
_GIT: Final = "git -c user.name=cueline -c user.email=cueline@localhost -c core.hooksPath=/dev/null"
_COMMIT: Final = f"""
rm -f "$(git rev-parse --git-path index.lock)" && git add --all || exit
git diff --cached --quiet || {_GIT} commit --quiet --message "$1" || exit
test -n "$(git for-each-ref --contains HEAD refs/heads refs/remotes refs/tags)" ||
    git branch --force "$2" HEAD
"""
_SNAPSHOT: Final = f"""
export GIT_INDEX_FILE="$(git rev-parse --git-path index.snapshot)"
rm -f "$GIT_INDEX_FILE.lock" && cp "$(dirname "$GIT_INDEX_FILE")/index" "$GIT_INDEX_FILE" &&
    git add --all || exit
commit=$({_GIT} commit-tree "$(git write-tree)" -p HEAD -m "$1") || exit
git update-ref "$1" "$commit"
"""
_RESTORE: Final = 'git reset --quiet --hard "$1" && git reset --quiet "$1^"'


class WorktreeBackend(LocalBackend):
    """See `SandboxBackend`. What is not committed at the end is committed, and the branch stays."""

    folder_name = "worktrees"
    has_overlay = False

    def delete(self, place: str) -> None:
        """Commit what is not committed, and delete the worktree; delete an unchanged branch.

        Raises:
            SandboxError: the files cannot be committed; they stay.
        """
        folder = self._root / place
        if self.state(place) != "gone":
            about = self._about(folder)
            spec, branch = SandboxSpec.model_validate(about.spec), _branch(place, about.labels)
            if (folder / place / ".git").exists():
                message = f"Keep what {_session(about.labels)} left"
                self._git_there(place, _COMMIT, message, f"{branch}-detached")
            _remove_tree(folder, spec)
            unchanged = ("--points-at", (folder / _BASE).read_text(), f"refs/heads/{branch}")
            for found in ((_snapshot_of(place),), unchanged):
                for each in _git(spec, "for-each-ref", "--format=%(refname)", *found).split():
                    _git(spec, "update-ref", "-d", each)
        super().delete(place)

    def snapshot(self, place: str, name: str) -> None:
        """Keep the files as a commit that is on no branch."""
        self._git_there(place, _SNAPSHOT, _snapshot_of(place, name))

    def fork(self, place: str, name: str, labels: Mapping[str, str]) -> str:
        about = self._about(self._folder(place))
        spec, commit = SandboxSpec.model_validate(about.spec), _snapshot_of(place, name)
        try:
            _git(spec, "rev-parse", "--verify", commit)
        except SandboxError:
            raise SandboxError(place, f"it has no snapshot of the call {name}") from None
        fork = self.create(spec, labels, about.environment)
        self._git_there(fork, _RESTORE, commit)
        return fork

    def _check(self, spec: SandboxSpec) -> None:
        check(Isolation())
        if not Path(spec.workspace, ".git").is_dir() or not spec.workspace:
            why = f"{spec.workspace or 'its workspace'} is not the folder of a git repository"
            raise ConfigError("sandbox", f"{why}: name that folder, or run `git init` there")

    def _fill(self, folder: Path, spec: SandboxSpec, labels: Mapping[str, str]) -> None:
        if not (folder / _BASE).exists():
            (folder / _BASE).write_text(_git(spec, "rev-parse", "HEAD"))
        base, branch = (folder / _BASE).read_text(), _branch(folder.name, labels)
        _remove_tree(folder, spec)  # a crash left a part of it
        tree = str(folder / folder.name)
        _git(spec, "worktree", "add", "--quiet", "--force", "-B", branch, tree, base)

    def _access(self, folder: Path, spec: SandboxSpec) -> tuple[Path, dict[str, Any]]:
        git = Path(spec.workspace, ".git").resolve()
        own = [git / "objects", git / "refs", git / "logs", _record_of(folder, spec)]
        written = tuple(str(each) for each in own if each.exists())
        return folder / folder.name, {"read": (str(git),), "write": written}

    def _git_there(self, place: str, script: str, *words: str) -> None:
        command = ["/bin/sh", "-c", script, "sh", *words]
        with self._locked(place) as folder:  # also if it is stopped
            ended = self._run(folder, command, b"", {}, _SECONDS)
        if ended.exit_code:
            tree = self._root / place / place
            raise SandboxError(place, f"git failed in {tree}: {output_text(ended)}")


def _remove_tree(folder: Path, spec: SandboxSpec) -> None:
    """Remove the worktree; `git worktree prune` would also forget those of absent disks."""
    with _lock_of(spec):
        for each in (folder / folder.name, _record_of(folder, spec)):
            remove(each)


def _lock_of(spec: SandboxSpec) -> AbstractContextManager[None]:
    """Return the lock of the repository: git fails at a half-made record of another worktree."""
    return locked(Path(spec.workspace, ".git"))


def _record_of(folder: Path, spec: SandboxSpec) -> Path:
    """Return the folder in which the repository has what it knows of the worktree."""
    return Path(spec.workspace, ".git").resolve() / "worktrees" / folder.name


def _branch(place: str, labels: Mapping[str, str]) -> str:
    name = re.sub(r"[^A-Za-z0-9_-]+", "-", _session(labels))
    return f"cueline/{name}-{place[:6]}"


def _session(labels: Mapping[str, str]) -> str:
    return shown(labels.get(SESSION_LABEL, labels[NAME_LABEL]))


def _snapshot_of(place: str, name: str = "") -> str:
    return f"refs/cueline/{place}/{name}".rstrip("/")


def _git(spec: SandboxSpec, *words: str) -> str:
    """Return the output of git in the workspace, where no command of a sandbox has written.

    Raises:
        SandboxError: git failed, or is not installed.
    """
    command = ["git", "-C", spec.workspace, *words]
    # A hook of git, for one, has variables that name another repository.
    around = {name: each for name, each in os.environ.items() if not name.startswith("GIT_")}
    try:
        with _lock_of(spec):
            done = subprocess.run(  # noqa: S603 - the words are ours
                command, env=around, capture_output=True, text=True, check=False
            )
    except FileNotFoundError:
        raise SandboxError(spec.workspace, "git is not installed") from None
    if done.returncode:
        raise SandboxError(spec.workspace, f"git failed: {done.stderr.strip()}")
    return done.stdout.strip()
