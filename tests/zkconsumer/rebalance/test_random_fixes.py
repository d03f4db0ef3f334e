"""Each option that removes a weakness, under the same random interleavings with and without it.

Without the option some seeds must show the fault: an invariant that never breaks proves nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from tests.support.model import faults as model_faults
from tests.support.model.actions import EXPIRIES, GARBAGE, STALE, UNREADABLE, beginning, end_of_faults
from tests.support.model.faults import Check, Plan, first_to_break
from tests.support.model.group import ModelGroup
from tests.support.model.zookeeper import ModelZooKeeper
from tests.support.properties import examples

pytestmark = pytest.mark.hypothesis  # its seeds are examples: `make test-long` tries more of them, too

SEEDS = 40
#: Joining members are held back while others go on and commit.
MOVES = ("join", "go_on", "go_on_everybody", "hold", "let_go", "grow", "consume", "commit")
ORDERLY = Plan(actions=MOVES)
LAGGING = Plan(actions=(*MOVES, *STALE))
EXPIRING = Plan(actions=(*MOVES, "expire", "reach", "close"), servers=1)
CUT = Plan(actions=(*MOVES, "cut", "lose_answer", "reach", *EXPIRIES))


def test_offsets_read_after_the_claim_are_not_stale() -> None:
    check = model_faults.starts_where_the_group_has_come_to
    assert breaks(ORDERLY, check)
    assert holds(ORDERLY, check, claim_before_offsets=True)


def test_a_checked_release_deletes_no_node_of_another_session() -> None:
    check = model_faults.deletes_only_its_own
    assert breaks(EXPIRING, check, first=37)  # the first of all
    assert holds(EXPIRING, check, checked_release=True)


def test_checked_claim_does_not_adopt_another_sessions_node() -> None:
    """A second member of the same name created it, and its session will remove it."""
    check = model_faults.takes_no_others_node_for_its_own
    plan = Plan(actions=(*MOVES, "stranger_claims", "strangers_go"))
    assert breaks(plan, check)
    assert holds(plan, check, checked_claim=True)


def test_epoch_fence_refuses_commits_after_the_next_owner() -> None:
    check = model_faults.commits_only_as_the_last_claimant
    assert breaks(EXPIRING, check)
    assert holds(replace(EXPIRING, fence="epoch"), check, fence_epochs=True)


def test_session_fence_refuses_commits_after_the_next_owner() -> None:
    """As long as no member deletes the nodes of others, which another option prevents."""
    check = model_faults.commits_only_as_the_last_claimant
    assert breaks(EXPIRING, check, checked_release=True)
    assert holds(replace(EXPIRING, fence="session"), check, checked_release=True)


def test_member_that_stops_on_disconnect_delivers_nothing_without_a_connection() -> None:
    check = model_faults.delivers_only_while_connected
    plan = replace(CUT, always=check)
    assert breaks(plan, check)
    assert holds(plan, check, stop_on_disconnect=True)


def test_members_that_stop_on_disconnect_never_deliver_together() -> None:
    """A session ends only after a lost connection, which its member notices; no other member can claim before."""
    plan = replace(EXPIRING, always=model_faults.delivers_alone)
    assert breaks(plan, model_faults.delivers_alone)
    assert holds(plan, model_faults.delivers_alone, stop_on_disconnect=True, checked_release=True)


def test_group_read_after_a_sync_is_not_stale() -> None:
    check = model_faults.reads_nothing_older_than_the_attempt
    assert breaks(LAGGING, check)
    assert holds(LAGGING, check, sync_before_reads=True)


def test_members_that_retry_when_free_leave_no_partition_free() -> None:
    assert breaks(LAGGING, everything_is_owned_by_the_rule, max_retries=1)
    assert holds(LAGGING, everything_is_owned_by_the_rule, max_retries=1, retry_when_free=True)


def test_members_that_skip_an_unreadable_one_go_on() -> None:
    plan = Plan(actions=(*MOVES, *GARBAGE), finish=end_with_an_unreadable_member)
    assert breaks(plan, everything_is_owned_by_the_rule, max_retries=4)
    assert holds(plan, everything_is_owned_by_the_rule, max_retries=60, skip_unreadable_members=True)


def test_quiet_time_merges_many_changes_into_one_rebalance() -> None:
    assert rebalances_of_the_first_member() > 2
    assert rebalances_of_the_first_member(quiet_ms=500) == 2  # one for itself, and one for all four


def breaks(plan: Plan, check: Check, *, first: int = 0, **options: Any) -> bool:
    """Whether some seed from `first` on breaks `check`."""
    return _first_to_break(range(first, first + SEEDS), plan, check, options) is not None


def holds(plan: Plan, check: Check, **options: Any) -> bool:
    """Whether `check` holds under every seed that is tried."""
    return _first_to_break(range(examples(SEEDS)), plan, check, options) is None


def _first_to_break(seeds: range, plan: Plan, check: Check, options: dict[str, Any]) -> Any:
    return first_to_break(seeds, plan, check, **{"max_retries": 6, **options})


def rebalances_of_the_first_member(**options: int) -> int:
    """How many rebalances the first member makes when four more join at once."""
    group = beginning(ModelZooKeeper())
    first = group.join("c0", {"t": 1}, **options)
    group.settle()
    for number in range(1, 5):
        joins = group.join(f"c{number}", {"t": 1}, **options)
        # Each join is noticed before the next one, and no member waits for anything that takes time.
        while moves := [(member, name) for member in (joins, first) for name in member.ready_now()]:
            group.go_on(*moves[0])
    group.settle()
    assert group.owners() == group.by_the_rule()
    return sum(event.kind == "rebalance_started" for event in first.emitted)


def everything_is_owned_by_the_rule(group: ModelGroup) -> None:
    """No exception for members that gave up; the original's hole at R3a stays."""
    if not any(member.missed_a_broker for member in group.members):
        assert group.owners() == group.by_the_rule()


def end_with_an_unreadable_member(group: ModelGroup) -> None:
    end_of_faults(group)
    group.zookeeper.put(UNREADABLE, b"not json")
    group.settle()
