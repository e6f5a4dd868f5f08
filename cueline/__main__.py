"""The command line, for `python -m cueline`."""

from cueline.cli import main

main()
