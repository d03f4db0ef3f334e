"""Python's collection of garbage, where it costs more than it gives."""

from __future__ import annotations

import gc
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


@contextmanager
def collection_put_off() -> Iterator[None]:
    """For code that makes millions of objects without cycles: looking for some would take longer than the work."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()
