"""A bar of a chart, made of eighths of a character."""

from decimal import Decimal

_EIGHTHS = " ▏▎▍▌▋▊▉█"


def bar(share: float | Decimal, width: int) -> str:
    """Return a bar of *share* of *width*; a share above 0 is always visible."""
    eighths = round(float(share) * width * 8)
    if share > 0:
        eighths = max(eighths, 1)
    whole, rest = divmod(eighths, 8)
    return _EIGHTHS[8] * whole + (_EIGHTHS[rest] if rest else "")
