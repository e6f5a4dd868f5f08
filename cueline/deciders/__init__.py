"""What may happen: pure rules, without clock, chance or outside world."""
