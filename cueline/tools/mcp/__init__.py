"""Tools of MCP servers: their definitions, their connections, and the executor of their calls."""
