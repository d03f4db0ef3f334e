"""Which row of the rebalance table a ZooKeeper operation belongs to. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comparison.playground.messages import StepRow


def rows_of(table: Sequence[StepRow], operation: str, path: str, step: str) -> tuple[int, ...]:
    """The rows that the operation may belong to, from its step: those that name it, and its path as far as they do.

    Steps have several rows, and an operation says only its step. So there may be more than one.
    """
    of_step = [number for number, row in enumerate(table) if row.step == step]
    naming = [number for number in of_step if operation in table[number].requests] or of_step
    on_path = [number for number in naming if _mentioned(table[number].requests, operation, path)]
    return tuple(on_path or naming)


def _mentioned(requests: str, operation: str, path: str) -> bool:
    """Whether one of a row's requests is this operation on such a path: ids/x, topics/t, /brokers/ids."""
    parts = [part for part in path.split("/") if part]
    for request in requests.split(", "):
        name, _, rest = request.partition(" ")
        if name != operation or not rest:
            continue
        what = [part for part in rest.split(" ")[0].split("/") if part]
        if what and what[0] in parts and len(parts) - parts.index(what[0]) == len(what):
            return True
    return False
