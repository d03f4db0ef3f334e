"""What is true of a group of the `consumer` design after any request."""

from __future__ import annotations

from collections import Counter

from coordinator.groups.consumer.group import ConsumerGroup
from coordinator.groups.consumer.groups import ConsumerGroups
from coordinator.groups.consumer.target_table import TargetTable
from coordinator.groups.partitions import each, is_within


def check_owners(group: ConsumerGroup) -> None:
    """A partition is in the hands of one member at most, and the group knows whose."""
    held = [
        (place, member.id)
        for member in group.members.values()
        for part in (member.assigned, member.revoking)
        for place in each(part)
    ]
    assert len(held) == len({place for place, _ in held})
    assert dict(held) == group.owners
    for member in group.members.values():
        if member.is_at(group.target_epoch):
            assert is_within(member.assigned, group.target_of(member.id))
    targets = [place for target in group.targets.values() for place in each(target)]
    assert len(targets) == len(set(targets))


def check_tables(group: ConsumerGroup) -> None:
    """What is kept beside the records follows from them."""
    assert group.subscriptions == Counter(member.subscription for member in group.members.values())
    assert group.regex_uses == Counter(member.topic_regex for member in group.members.values() if member.topic_regex)
    assert group.votes == Counter(member.assignor for member in group.members.values())
    if (table := group.table) is not None:
        subscriptions = {member.id: member.subscription for member in group.members.values()}
        fresh = TargetTable(table.names, table.known, subscriptions, group.targets)
        assert (table.members, table.outdated) == (fresh.members, fresh.outdated)
        assert (table.rows[table.owner] == fresh.rows[fresh.owner]).all()


def check_epochs(group: ConsumerGroup, before: tuple[int, int]) -> tuple[int, int]:
    """No epoch is ahead of the one that it follows, or smaller than `before` (the group's and the target's)."""
    now = (group.epoch, group.target_epoch)
    assert all(new >= old for new, old in zip(now, before, strict=True))
    assert group.target_epoch <= group.epoch
    for member in group.members.values():
        assert -2 <= member.epoch <= group.target_epoch
    return now


def hard_state(groups: ConsumerGroups) -> object:
    """All that is stored.

    A member that changes its instance id is known by the former one, too, until its coordinator changes, as in 4.1.1.
    """
    return {
        group.id: (
            group.epoch,
            group.metadata_hash,
            group.target_epoch,
            group.members,
            {i: id_ for i, id_ in group.instances.items() if i == getattr(group.members.get(id_), "instance_id", None)},
            group.targets,
            group.owners,
            group.regexes,
        )
        for group in groups.groups.values()
        if group.epoch
    }
