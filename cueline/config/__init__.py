"""The settings from flags, the environment and `cueline.toml`; a command reads them once.

A value comes from the first source that has it: a flag, the environment, the agent's
file, `cueline.toml`, the default. A source is flat, with keys as in TOML
(`limits.max_turns`), and each value has its origin.
"""
