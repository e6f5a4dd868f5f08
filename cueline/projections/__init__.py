"""What it looks like: read models beside the log, which can be thrown away."""
