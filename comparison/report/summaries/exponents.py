"""How a figure grows, in words: the fitted exponent with its interval, for sweeps and for single runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from comparison.results.result import Growth
    from comparison.results.sweep import Exponent


def power_text(axis: str, fitted: Growth | Exponent, of: str) -> str:
    """`2.0 times per doubling of N (N^0.98; 95%: 0.90 to 1.06; 4 runs)`; `of` says what was fitted.

    Without an exponent, why there is none.
    """
    exponent, low, high = fitted.exponent, fitted.low, fitted.high
    if exponent is None:
        return f"no exponent of {axis} ({fitted.reason})"
    if exponent == low == high == 0:
        return f"the same at every value of {axis} ({of})"
    if low is None or high is None:
        interval = f"{of}: no interval"
    else:
        flat = ", 0 included" if low <= 0 <= high else ""
        interval = f"95%: {_rounded(low)} to {_rounded(high)}{flat}; {of}"
    return f"{2**exponent:.1f} times per doubling of {axis} ({axis}^{_rounded(exponent)}; {interval})"


def _rounded(value: float) -> str:
    return f"{value + 0.0:.2f}".replace("-0.00", "0.00")
