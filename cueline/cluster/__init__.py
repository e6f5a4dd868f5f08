"""Where the actors run: thin wrappers around Ray, proxies, start and stop."""
