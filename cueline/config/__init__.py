"""What is set from outside: flags, the environment, `cueline.toml`; read once, by the command line.

A value comes from the first layer that names it: a flag, the environment, the
agent's file, `cueline.toml`; else it is the default. A layer is flat, keyed as
TOML does (`limits.max_turns`), and each of its values says where it came from.
"""
