"""Runs sessions: in this process, on Ray or on a running `cueline up`; and opens logs."""
