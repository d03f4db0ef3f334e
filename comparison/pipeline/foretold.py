"""What a change cost beside what it must cost: the counts of a trace against those of the models."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from comparison.pipeline import group_model, model
from comparison.pipeline.counts import READS
from comparison.pipeline.result import Counted
from kernel.designs import COORDINATED, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.pipeline.measured import EventCount, PartitionOwners
    from comparison.pipeline.tallies import Tallies

OK, CONFLICT = "ok", "conflict"
#: What the coordinator of the `server` design reads under its watch on a group's ids.
WATCHING = "server-ids"
LATE_SYNC = ("SyncGroup", "REBALANCE_IN_PROGRESS")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What was seen of a change; `owners` are the authority's; None when it was not traced."""

    change: str
    members: int | None
    rounds: int
    stopped: int
    moved: int
    owners: Sequence[PartitionOwners] | None
    leader_went: bool = False


def counted(design: str, seen: Seen, tally: Tallies, parameters: Mapping[str, Any]) -> list[Counted]:
    """The counts that the model foretells for a change, beside what was counted; none where it does not reach.

    The models do not reach attempts that failed otherwise than by a conflict, nor, where a coordinator leads,
    members of several streams: each is a member of the group by itself, and how many of those that come at once
    find the same round is a matter of time.
    """
    if seen.members is None:
        return []
    if design == ZOOKEEPER:
        foretold, measured = _zookeeper(seen, tally, parameters)
    elif design in COORDINATED and int(parameters.get("streams", 1)) == 1:
        foretold, measured = _coordinated(design, seen, tally, parameters)
    else:
        return []
    return [
        Counted(what=name, measured=measured[name], model=told.count, formula=told.formula)
        for name, told in foretold.items()
    ]


def _zookeeper(
    seen: Seen, tally: Tallies, parameters: Mapping[str, Any]
) -> tuple[Mapping[str, model.Foretold], Mapping[str, int]]:
    others = tally.sum("attempt_ended", where=lambda count: count.outcome not in (OK, CONFLICT))
    if seen.change not in model.MODELLED or seen.members is None or others:
        return {}, {}
    topics = int(parameters.get("topics", 1))
    setting = model.Setting(
        members=seen.members,
        topics=topics,
        partitions=topics * int(parameters.get("partitions", 0)),
        brokers=int(parameters.get("brokers", 1)),
        streams=int(parameters.get("streams", 1)),
        released=_owned_by_who_went(seen.owners) if seen.owners is not None else None,
        one_read=parameters.get("settings", {}).get("watch.reads") == "one",
    )
    measured = {
        "reads": tally.operations(reads=True),
        "writes": tally.operations(reads=False, commits=False),
        "notifications": tally.sum("zk_notified"),
    }
    return model.zookeeper(seen.change, setting, _troubles(tally)), measured


def _coordinated(
    design: str, seen: Seen, tally: Tallies, parameters: Mapping[str, Any]
) -> tuple[Mapping[str, model.Foretold], Mapping[str, int]]:
    if seen.change not in group_model.MODELLED or seen.members is None:
        return {}, {}
    owners = seen.owners or ()
    setting = group_model.GroupSetting(
        members=seen.members,
        partitions=int(parameters.get("topics", 1)) * int(parameters.get("partitions", 0)),
        released=_owned_by_who_went(owners) if owners else None,
        moved=_dealt_anew(seen, parameters),
        leader_went=seen.leader_went,
        synced_late=tally.sum("request_answered", where=lambda count: (count.name, count.outcome) == LATE_SYNC) > 0,
    )
    requests = tally.by("request_answered", lambda count: count.name)
    measured = {
        "JoinGroup": requests.get("JoinGroup", 0),
        "SyncGroup": requests.get("SyncGroup", 0),
        "generations": seen.rounds,
        "stopped": seen.stopped,
        "moved": seen.moved,
        "notifications": tally.sum("zk_notified"),
        "coordinator notifications": tally.sum("zk_notified", role="broker", where=lambda count: count.area == "ids"),
        "coordinator reads": tally.sum("zk_op", role="broker", where=_watching),
    }
    return group_model.foretell(design, seen.change, setting), measured


def _watching(count: EventCount) -> bool:
    return count.step == WATCHING and count.name in READS


def _dealt_anew(seen: Seen, parameters: Mapping[str, Any]) -> int | None:
    """What an assignor that deals anew moves, by the ids of the owners before and after; None when some own nothing."""
    owners, members = seen.owners or (), seen.members or 0
    before, after = (sorted({owner for owner in each if owner}) for each in _columns(owners))
    strategy = str(parameters.get("strategy") or group_model.RANGE)
    partitions = [(each.topic, each.partition) for each in owners]
    if seen.change == model.RESTART:
        went = {owner for owner in before if owner not in after}
        staying = [owner for owner in before if owner not in went]
        if len(before) != members or len(after) != members:
            return None
        away = group_model.dealt_anew(strategy, partitions, before, staying)
        back = group_model.dealt_anew(strategy, partitions, staying, after)
        return away + back if away is not None and back is not None else None
    if len(after) != members or len(before) != members + (-1 if seen.change == model.JOIN else 1):
        return None
    return group_model.dealt_anew(strategy, partitions, before, after)


def _columns(owners: Sequence[PartitionOwners]) -> tuple[list[str | None], list[str | None]]:
    return [each.before for each in owners], [each.after for each in owners]


def _owned_by_who_went(owners: Sequence[PartitionOwners]) -> int:
    """Partitions of owners that own nothing any more: when one goes, nobody else is left without."""
    still = {each.after for each in owners}
    return sum(1 for each in owners if each.before is not None and each.before not in still)


def _troubles(tally: Tallies) -> model.Troubles:
    """What the model takes from the trace: attempts that failed, offsets that were read, claims that failed."""

    def steps(step: str, *, reads: bool, failed: bool = False) -> int:
        return tally.sum(
            "zk_op",
            where=lambda count: (
                count.step == step and (count.name in READS) is reads and (count.outcome != OK or not failed)
            ),
        )

    return model.Troubles(
        attempts=tally.sum("attempt_ended", where=lambda count: count.outcome == CONFLICT),
        offset_reads=steps("R8", reads=True),
        conflicts=steps("R11", reads=False, failed=True),
    )
