"""What a program needs to be found and read where it runs isolated."""

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from shutil import which
from typing import Final

from cueline.events.agent_parts import Isolation

_PACKAGES: Final = "/node_modules/"


def with_program(
    command: Sequence[str],
    isolation: Isolation,
    environment: Mapping[str, str],
    workspace: Path | None,
) -> tuple[Isolation, dict[str, str]]:
    """Return *isolation* and *environment* with which *command* can read itself.

    It reads its program with the libraries beside it, and each file that it names by an absolute
    path; of a package of Node, the folder of all packages.
    """
    if isolation.kind == "none":
        return isolation, dict(environment)
    path = environment.get("PATH", "")
    program = which(command[0], path=path) or command[0]
    real = os.path.realpath(program)
    python = os.path.realpath(f"{os.path.dirname(real)}/python3")  # noqa: PTH120 - a text
    folders = [os.path.dirname(each) for each in (program, real, python) if os.path.isabs(each)]  # noqa: PTH117, PTH120 - texts
    place = [] if workspace is None else [os.path.realpath(workspace)]
    changed = [Path(each) for each in (*place, *isolation.write)]
    named = [
        each
        for each in dict.fromkeys(_files([real, *command[1:]]))
        if not any(Path(each).is_relative_to(folder) for folder in changed)
    ]
    granted = isolation.model_copy(update={"read": (*isolation.read, *named)})
    return granted, {**environment, "PATH": os.pathsep.join([path, *folders])}


def _files(words: Sequence[str]) -> Iterator[str]:
    for each in words:
        if each.startswith("/") and Path(each).is_file():
            folder, inside, _ = each.partition(_PACKAGES)
            yield f"{folder}{_PACKAGES}".rstrip("/") if inside else each
