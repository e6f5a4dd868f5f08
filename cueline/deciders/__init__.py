"""The rules: pure functions without clock, randomness or I/O."""
