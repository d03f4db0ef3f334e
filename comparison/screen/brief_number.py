"""A number in three digits, for figures that are not known better."""

from __future__ import annotations

#: Above a thousand, with their letters.
_LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def brief(value: float) -> str:
    """As 4, 0.25, 13.4k or 2.53M."""
    size, letter = next((pair for pair in _LARGE if value >= 0.9995 * pair[0]), (1.0, ""))
    return f"{float(f'{value / size:.3g}'):g}{letter}"
