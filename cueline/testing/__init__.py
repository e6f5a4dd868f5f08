"""What tests are made of: given/when/then, fakes, contract suites."""
