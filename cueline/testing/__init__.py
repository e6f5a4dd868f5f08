"""Tools for tests of agents, tools and backends.

`cueline.testing.crash_everywhere` kills a user's agent at every point, and `crash` a whole
cueline at a chosen one; `fakes` implement the ports; a test moves `FakeClock`; the contract
suites of stores and presence boards are classes to be inherited.
"""
