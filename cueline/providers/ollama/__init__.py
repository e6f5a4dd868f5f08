"""Models of an Ollama server; importing `connection` takes a while."""
