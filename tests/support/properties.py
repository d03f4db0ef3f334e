"""How many examples the properties try: a few in `make test`, many in `make test-long` (tests/conftest.py)."""

from __future__ import annotations

from hypothesis import settings

#: To how many the numbers in the tests refer.
USUAL = 100


def examples(usual: int) -> int:
    """The number for a property that is to try `usual` where one without a number of its own tries a hundred."""
    return max(1, usual * settings.default.max_examples // USUAL)
