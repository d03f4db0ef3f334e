"""Errors that reached applications, each reported once: members of a group often get the same one, again and again."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable


def each_once(failures: Iterable[str]) -> list[str]:
    """`m1, m2: no broker answers`: of texts that begin with a process, in the order of the first of each error."""
    by_error: dict[str, dict[str, None]] = {}
    for failure in failures:
        process, _, error = failure.partition(": ")
        by_error.setdefault(error, {})[process] = None
    return [f"{', '.join(processes)}: {error}" for error, processes in by_error.items()]
