"""Models of an Ollama server; importing `connection` and `reply` takes a while."""
