"""The actors on Ray: thin wrappers, proxies, start and stop."""
