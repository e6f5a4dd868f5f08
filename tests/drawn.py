"""How many examples a test draws: a sample, or with `WHOLE=1`, as `make test-long` does, all."""

import os

_SHARE = 1 if os.environ.get("WHOLE") else 5
_LEAST = 5


def drawn(whole: int) -> int:
    """Return the number of examples out of *whole*."""
    return max(_LEAST, whole // _SHARE)
