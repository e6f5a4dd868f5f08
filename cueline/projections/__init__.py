"""Read models beside the log; they can be deleted and rebuilt at any time."""
