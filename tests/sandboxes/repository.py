"""A git repository for tests."""

import subprocess


def git(folder, *words):
    command = ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", "-C", folder, *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def repository(folder):
    folder.mkdir(exist_ok=True)
    (folder / "there").write_text("before")
    git(folder, "init", "--quiet", "--initial-branch", "main")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Begin")
    return folder
