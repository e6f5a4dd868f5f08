"""The rules of cueline: pure functions without clock, randomness or I/O."""
