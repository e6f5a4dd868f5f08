"""What tests of agents, tools and backends are made of.

`cueline.testing.crash` kills a whole cueline at a chosen point; `fakes` stand
in at the ports; `FakeClock` moves when it is told to; the contract suites of
stores and presence boards are classes to be inherited.
"""
