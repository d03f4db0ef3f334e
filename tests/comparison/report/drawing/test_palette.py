"""Colours that stand beside each other in a picture can be told apart."""

from __future__ import annotations

from itertools import product

import numpy as np

from comparison.report.drawing.palette import ADDITION, COLOURS, PHASES

#: Below this distance (CIE 1976) two colours of small bars look alike.
ALIKE = 18


def lab(colour: str) -> np.ndarray:
    """L*, a* and b* of `#rrggbb`, under the white of a screen."""
    shown = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    light = np.where(shown <= 0.04045, shown / 12.92, ((shown + 0.055) / 1.055) ** 2.4)
    x, y, z = np.cbrt([[0.434, 0.376, 0.190], [0.213, 0.715, 0.072], [0.018, 0.109, 0.873]] @ light)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def test_no_phase_has_the_colour_of_a_member() -> None:
    alike = [
        (phase, number)
        for (phase, colour), (number, other) in product({**PHASES, **ADDITION}.items(), enumerate(COLOURS, start=1))
        if np.linalg.norm(lab(colour) - lab(other)) < ALIKE
    ]
    assert alike == []
