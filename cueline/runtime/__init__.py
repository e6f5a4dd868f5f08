"""Where sessions run: in this process, on Ray or on a running `cueline up`; and open logs."""
