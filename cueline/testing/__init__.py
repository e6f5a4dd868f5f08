"""Tools for tests of agents, tools and backends.

`cueline.testing.crash` kills a whole cueline at a chosen point; `fakes` implement the
ports; a test moves `FakeClock`; the contract suites of stores and presence boards are
classes to be inherited.
"""
