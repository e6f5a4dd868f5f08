"""Anthropic's models; only `connection` and `reply` load the SDK, which takes its time."""
