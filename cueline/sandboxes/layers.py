"""The layers of an overlay: folders of changes, a later one over an earlier one.

The files of a layer are never changed, so two sandboxes can have the same ones.
"""

import os
import shutil
import subprocess
from contextlib import suppress
from pathlib import Path
from typing import Final

from cueline.errors import SandboxError

MOST_LAYERS: Final = 24
"""The number of layers from which the two oldest are merged; the kernel takes some more."""
MERGED: Final = "m"
"""The end of the name of a layer that has those before it, too."""
_OPAQUE: Final = ("trusted.overlay.opaque", "user.overlay.opaque")


def remove(folder: Path) -> None:
    """Remove *folder* or file, also what an overlay left that nobody may enter."""
    if folder.is_symlink() or not folder.is_dir():
        folder.unlink(missing_ok=True)
        return
    for root, folders, _ in os.walk(folder):
        for inner in (Path(root, name) for name in folders):
            with suppress(OSError):
                if not inner.is_symlink():
                    inner.chmod(0o700)
    shutil.rmtree(folder, ignore_errors=True)


def merge_oldest(layers: Path) -> None:
    """Merge the two oldest of too many *layers*.

    A crash in the middle leaves layers that together have the same files: the merged one lies over
    the two.
    """
    known = sorted(layers.iterdir())
    last = max((each for each in known if each.name.endswith(MERGED)), default=None)
    for each in [] if last is None else known[: known.index(last)]:
        remove(each)  # a crash left it; the merged one has it, too
        known.remove(each)
    if len(known) <= MOST_LAYERS:
        return
    oldest, second = known[:2]
    merged = layers.with_name("merged")
    remove(merged)
    link_tree(oldest, merged)
    _lay_over(second, merged)
    merged.rename(second.with_name(f"{second.name.rstrip(MERGED)}{MERGED}"))
    remove(second)
    remove(oldest)


def _lay_over(upper: Path, lower: Path) -> None:
    """Bring the changes that the layer *upper* holds into *lower*, as overlayfs shows them."""
    for each in upper.iterdir():
        below = lower / each.name
        is_folder = each.is_dir() and not each.is_symlink()
        if not is_folder or _is_opaque(each) or below.is_symlink() or not below.is_dir():
            remove(below)
        if is_folder and below.exists():
            shutil.copystat(each, below)
            _lay_over(each, below)
        elif is_folder:
            link_tree(each, below)
        else:  # also the device that stands for a deleted file
            os.link(each, below, follow_symlinks=False)


def _is_opaque(folder: Path) -> bool:
    for name in _OPAQUE:
        with suppress(OSError):
            if os.getxattr(folder, name) == b"y":
                return True
    return False


def link_tree(source: Path, target: Path) -> None:
    """Copy the folders of *source*, and link its files.

    Raises:
        SandboxError: the disk has no room, or a file cannot be linked.
    """
    done = subprocess.run(  # noqa: S603 - two folders of ours
        ["cp", "-al", source, target],  # noqa: S607
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise SandboxError(target.name, f"it cannot be copied: {done.stderr.strip()}")
