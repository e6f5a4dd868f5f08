"""Tools: the tool contract, file tools, the shell, and worker processes."""
