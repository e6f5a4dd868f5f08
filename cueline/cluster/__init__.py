"""The actors on Ray: wrappers, proxies, placement and supervision."""
