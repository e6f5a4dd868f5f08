"""Google's Gemini models; importing `connection` and `reply` takes a while."""
