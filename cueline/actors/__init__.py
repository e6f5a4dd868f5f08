"""Sessions, hosts, runners, gate, ledger and dispatcher as plain async classes, without Ray."""
