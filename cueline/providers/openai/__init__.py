"""OpenAI's models, and the many servers with its protocol; importing `connection` takes a while."""
