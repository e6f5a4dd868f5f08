"""What agents may do: the tool contract, files, the shell, and the processes tools run in."""
