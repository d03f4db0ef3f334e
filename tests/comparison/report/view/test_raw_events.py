"""What is told of an event beside the lanes: whom it is about, which partitions, and its fields."""

from __future__ import annotations

from typing import Any

from comparison.report.view.naming import MemberNames
from comparison.report.view.raw_events import TEXT_MAX, raw_events
from kernel.trace.events import COMMON_FIELDS, KINDS
from tests.support.runs.seen_runs import UUID
from tests.support.trace.traces import e

NAMES = MemberNames((), [{"process": "m1", "member": f"m1-{UUID}", "stream": 0}])


def told(kind: str, process: str = "m1", **fields: Any) -> Any:
    made = e(2, process, kind, **fields)
    traced = {name: made[name] for name in made if name in COMMON_FIELDS or name in KINDS[kind].fields}
    (found,) = raw_events([traced], NAMES)
    return found


def test_event_of_a_member_has_its_short_name_and_its_partitions() -> None:
    found = told("partitions_revoked", member=f"m1-{UUID}", t="t0 t2", generation=3)
    assert (found.at_ms, found.who, found.partitions) == (2.0, "m1", ("t-0", "t-2"))
    assert found.text == "partitions_revoked partitions=t-0,t-2 all=t-0,t-2 generation=3"


def test_event_of_an_authority_is_about_the_member_that_it_names() -> None:
    refused = told("offset_refused", "broker-1", p=0, group="g", offset=9, by=f"m1-{UUID}", epoch=1, error="FENCED")
    named = told("authority_named", "broker-1", p=1, group="g", owner=f"m1-{UUID}", epoch=1)
    assert (refused.who, refused.partitions) == ("m1", ("t-0",))
    assert (named.who, named.partitions) == ("m1", ("t-1",))
    assert "error=FENCED" in refused.text


def test_operation_on_a_partition_s_znode_is_about_that_partition() -> None:
    given = {"ok": True, "step": "R11", "zxid": 7, "member": f"m1-{UUID}"}
    owner = told("zk_op", op="create", path="/consumers/g/owners/a.b/3", **given)
    group = told("zk_op", op="create", path="/consumers/g/ids", **given)
    assert (owner.partitions, group.partitions) == (("a.b-3",), ())
    assert owner.text == "zk_op op=create path=/consumers/g/owners/a.b/3 ok=true step=R11 zxid=7"


def test_event_of_the_runner_is_about_its_target_and_a_broker_s_about_the_broker() -> None:
    assert told("fault_started", "runner", fault="cut", target="m1").who == "m1"
    changed = {"group": "g", "state": "Stable", "generation": 2, "members": 1, "reason": "assignment stored"}
    assert told("group_changed", "broker-1", **changed).who == "broker-1"


def test_long_text_is_cut() -> None:
    found = told("partitions_assigned", member=f"m1-{UUID}", t=" ".join(f"t{n}" for n in range(200)))
    assert len(found.text) == TEXT_MAX
    assert found.text.endswith("…")
