"""Google's Gemini models; importing `connection` takes a while."""
