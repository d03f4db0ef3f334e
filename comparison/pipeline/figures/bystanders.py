"""How long the bystander waited, as figures: by change, and of the whole run."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.pipeline.silver.bystanders import BEFORE, DURING
from comparison.results.keys import WHOLE_RUN
from comparison.results.run import Bystander
from kernel.clock import in_ms

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.pipeline.measured import Measured

#: What the metrics call ZooKeeper's operations.
_NAMES: Mapping[str, str] = MappingProxyType({"getData": "get", "setData": "set"})


def bystanders_of(measured: Measured) -> list[Bystander]:
    """The figures of each change, stage and operation."""
    changes = {change.window: change for change in measured.changes}
    return [
        Bystander(
            change=changes[each.window].change,
            round=changes[each.window].round,
            members=changes[each.window].members,
            stage=each.stage,
            op=each.op,
            answered=each.answered,
            failed=each.failed,
            p50_ms=_ms(each.p50_ns),
            p99_ms=_ms(each.p99_ns),
            max_ms=_ms(each.max_ns),
        )
        for each in measured.bystanders
        if each.window != WHOLE_RUN
    ]


def bystander_metrics(measured: Measured) -> dict[str, float | None]:
    """Over all changes before which the group was left alone; None without a bystander."""
    found: dict[str, float | None] = {
        f"bystander_{name}_{stage}_{share}_ms": None
        for name in _NAMES.values()
        for share in ("p50", "p99")
        for stage in (BEFORE, DURING)
    }
    for each in measured.bystanders:
        if each.window == WHOLE_RUN and each.op in _NAMES:
            found[f"bystander_{_NAMES[each.op]}_{each.stage}_p50_ms"] = _ms(each.p50_ns)
            found[f"bystander_{_NAMES[each.op]}_{each.stage}_p99_ms"] = _ms(each.p99_ns)
    return found


def _ms(ns: int | None) -> float | None:
    return None if ns is None else in_ms(ns)
