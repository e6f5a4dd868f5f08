"""The command line, for `python -m cueline.cli`."""

from cueline.cli import main

main()
