"""ZooKeeper's transactions as events of the authority."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from comparison.scenarios.testbed.observer import Observed, ReplayClock, members_by_session, write_observed
from kernel.trace.events import Role
from kernel.trace.writer import TraceIdentity

OLD, NEW = 0x1000A, 0x1000B


@dataclass(frozen=True)
class Tx:
    zxid: int
    op: str
    path: str = ""
    data: bytes | None = None
    session: int = OLD
    cxid: int = 1
    time_ms: int = 1000
    removed_paths: tuple[str, ...] = ()


def events_of(*transactions: Tx) -> list[tuple[str, dict[str, object]]]:
    observed = Observed(members_by_session(transactions))
    return [(each.kind, dict(each.fields)) for tx in transactions for each in observed.events_of(tx)]


ID = "/consumers/g/ids/g_c1"
OWNER = "/consumers/g/owners/t/3"
OFFSET = "/consumers/g/offsets/t/3"


def test_creating_an_owner_node_names_the_owner_and_deleting_it_clears_it() -> None:
    partition = {"group": "g", "topic": "t", "partition": 3}
    assert events_of(Tx(7, "create", OWNER, b"g_c1-0"), Tx(9, "delete", OWNER)) == [
        ("authority_named", {**partition, "owner": "g_c1-0", "epoch": 7, "session": "0x1000a"}),
        ("authority_cleared", {**partition, "owner": "g_c1-0", "epoch": 7, "reason": "delete"}),
    ]


def test_nodes_of_an_expired_session_expire_and_those_of_a_closed_one_leave() -> None:
    begin = [Tx(1, "create", ID, b"{}"), Tx(2, "create", OWNER, b"g_c1-0")]
    expired = events_of(*begin, Tx(3, "closeSession", cxid=0, removed_paths=(OWNER, ID)))
    assert [fields.get("reason") for kind, fields in expired if kind.endswith(("cleared", "left"))] == ["session"] * 2
    closed = events_of(*begin, Tx(3, "closeSession", cxid=12, removed_paths=(OWNER, ID)))
    assert [fields.get("reason") for kind, fields in closed if kind.endswith(("cleared", "left"))] == ["leave"] * 2


def test_an_offset_belongs_to_the_member_of_its_session_even_before_it_registers() -> None:
    events = events_of(
        Tx(1, "create", ID, b"{}"),
        Tx(2, "create", OFFSET, b"10"),
        Tx(3, "closeSession", cxid=0, removed_paths=(ID,)),
        Tx(4, "setData", OFFSET, b"8", session=NEW),
        Tx(5, "create", ID, b"{}", session=NEW),
    )
    writes = [
        (fields["offset"], fields["by"], fields["session"]) for kind, fields in events if kind == "offset_written"
    ]
    assert writes == [(10, "g_c1", "0x1000a"), (8, "g_c1", "0x1000b")]


def test_an_offset_of_a_session_without_a_member_names_the_session() -> None:
    assert events_of(Tx(1, "setData", OFFSET, b"5"))[0][1]["by"] == "session:0x1000a"


def test_other_nodes_cause_no_events() -> None:
    assert events_of(Tx(1, "setData", OFFSET, b"many"), Tx(2, "create", "/brokers/ids/1", b"{}"), Tx(3, "error")) == []


def test_the_trace_uses_the_monotonic_clock(tmp_path: Path) -> None:
    path = tmp_path / "observer.jsonl"
    identity = TraceIdentity(run="r", scenario="s", design="zookeeper", role=Role.OBSERVER, process="observer")
    clock = ReplayClock(monotonic_ns=5_000_000_000, wall_ms=2000)
    count = write_observed([Tx(7, "create", OWNER, b"g_c1-0", time_ms=1500)], path, identity, clock)
    header, event, end = (json.loads(line) for line in path.read_text().splitlines())
    assert count == 1
    assert header["header"]["role"] == "observer"
    assert end == {"end": {"events": 1, "monotonic_ns": 4_500_000_000}}
    assert (event["ns"], event["cause"]) == (4_500_000_000, "zxid:7")
