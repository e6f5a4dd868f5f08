"""Where a log may be when nothing asks whether a disk keeps what it was given."""

from pathlib import Path

QUICK = "/dev/shm" if Path("/dev/shm").is_dir() else None
