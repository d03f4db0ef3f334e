"""A small run that keeps every promise, event by event."""

from __future__ import annotations

from typing import Any

from tests.support.trace.traces import e

PARAMETERS = {"members": 2, "partitions": 1, "topics": 1, "streams": 1, "brokers": 1, "rate": 10, "preset": "p"}
NAMED = {"group": "g", "p": 0}


def named(at_ms: float, owner: str, epoch: int) -> dict[str, Any]:
    return e(at_ms, "broker-1", "authority_named", **NAMED, owner=owner, epoch=epoch)


def cleared(at_ms: float, owner: str, epoch: int) -> dict[str, Any]:
    return e(at_ms, "broker-1", "authority_cleared", **NAMED, owner=owner, epoch=epoch, reason="generation ended")


def wrote(at_ms: float, offset: int, by: str, epoch: int) -> dict[str, Any]:
    return e(at_ms, "broker-1", "offset_written", **NAMED, offset=offset, by=by, epoch=epoch)


#: One partition with ten records, delivered and committed by its owner, which is another one in the second generation.
KEPT = (
    e(0, "runner", "run_started", parameters=PARAMETERS),
    e(1, "runner", "stage_entered", stage="warm"),
    named(100, "g_m1", 1),
    e(101, "m1", "partitions_assigned", t="t0", member="g_m1", stream=0, generation=1),
    e(150, "runner", "records_acked", p=0, first=0, last=9, serial_first=0, serial_last=9),
    e(200, "m1", "records_delivered", p=0, member="g_m1", stream=0, first=0, last=9, serial_first=0, serial_last=9),
    wrote(250, 10, "g_m1", 1),
    e(299, "m1", "partitions_revoked", t="t0", all=[], member="g_m1", stream=0),
    cleared(300, "g_m1", 1),
    named(301, "g_m2", 2),
    e(302, "m2", "partitions_assigned", t="t0", member="g_m2", stream=0, generation=2),
    e(900, "runner", "stage_entered", stage="final"),
    e(901, "runner", "final_offset", group="g", p=0, committed=10, end=10),
    e(950, "runner", "process_ended", target="m1", how="stop", code=0),
    e(999, "runner", "run_ended", outcome="complete"),
)

#: How a run ends that waited in vain.
END = "timed out after 60 s waiting for the group to settle (0 owners)"
