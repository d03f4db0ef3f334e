"""A number in three digits, for figures that are not known better."""

from __future__ import annotations

#: Above a thousand, with their letters.
_LARGE = ((1e9, "G"), (1e6, "M"), (1e3, "k"))


def brief(value: float) -> str:
    """As 4, 0.25, 13.4k or 2.53M."""
    return _rounded(value, *_unit(value))


def brief_range(low: float, high: float, to: str = "-") -> str:
    """Both in the unit of the higher one, as 0.02k-16.3k; 0 has none."""
    size, letter = _unit(high)
    if not letter or low >= size:
        return f"{_rounded(low, size, letter)}{to}{brief(high)}"
    below = f"{round(low / size, 2):g}"
    return f"{below}{letter if below != '0' else ''}{to}{brief(high)}"


def _unit(value: float) -> tuple[float, str]:
    return next((pair for pair in _LARGE if value >= 0.9995 * pair[0]), (1.0, ""))


def _rounded(value: float, size: float, letter: str) -> str:
    return f"{float(f'{value / size:.3g}'):g}{letter}"
