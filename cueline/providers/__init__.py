"""The providers of models: vendors, servers on your own machines, scripts and recordings."""
