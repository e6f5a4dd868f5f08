"""Anthropic's models; only `connection` and `reply` import the SDK, which is slow."""
