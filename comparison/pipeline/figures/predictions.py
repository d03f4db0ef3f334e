"""Compare what a change cost, counted in the trace, with what the models say it must cost."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from comparison.pipeline.figures import group_model, model
from comparison.results.counts import READS
from comparison.results.keys import CONFLICT, OK
from comparison.results.run import Counted
from kernel.designs import COORDINATED, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comparison.pipeline.figures.window_counts import WindowCounts
    from comparison.pipeline.measured import EventCount, PartitionOwners

#: What the coordinator of the `server` design reads under its watch on a group's ids.
WATCHING = "server-ids"
LATE_SYNC = ("SyncGroup", "REBALANCE_IN_PROGRESS")


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedChange:
    """What was observed of a change; `owners` are the authority's; None when it was not traced."""

    change: str
    members: int | None
    rounds: int
    stopped: int
    moved: int
    owners: Sequence[PartitionOwners] | None
    leader_went: bool = False


def compare_counts(
    design: str, observed: ObservedChange, counts: WindowCounts, parameters: Mapping[str, Any]
) -> list[Counted]:
    """Compare a change's counts with the model's; empty where no model applies.

    The models do not cover attempts that failed for another reason than a conflict. Under a coordinator they do not
    cover consumers with several streams either: each stream is a member of the group, and how many of them join in
    the same round depends on timing.
    """
    if observed.members is None:
        return []
    if design == ZOOKEEPER:
        predicted, measured = _zookeeper(observed, counts, parameters)
    elif design in COORDINATED and int(parameters.get("streams", 1)) == 1:
        predicted, measured = _coordinated(design, observed, counts, parameters)
    else:
        return []
    return [
        Counted(what=name, measured=measured[name], model=prediction.count, formula=prediction.formula)
        for name, prediction in predicted.items()
    ]


def _zookeeper(
    observed: ObservedChange, counts: WindowCounts, parameters: Mapping[str, Any]
) -> tuple[Mapping[str, model.Prediction], Mapping[str, int]]:
    others = counts.sum("attempt_ended", where=lambda count: count.outcome not in (OK, CONFLICT))
    if observed.change not in (*model.MODELLED, model.GROWTH) or observed.members is None or others:
        return {}, {}
    topics = int(parameters.get("topics", 1))
    setting = model.Setting(
        members=observed.members,
        topics=topics,
        partitions=topics * int(parameters.get("partitions", 0)),
        brokers=int(parameters.get("brokers", 1)),
        streams=int(parameters.get("streams", 1)),
        released=_released_partitions(observed.owners) if observed.owners is not None else None,
        release_1_1=parameters.get("settings", {}).get("kafka.release") == "1.1",
        one_read=parameters.get("settings", {}).get("watch.reads") == "one",
    )
    measured = {
        "reads": counts.operations(reads=True),
        "writes": counts.operations(reads=False, commits=False),
        "notifications": counts.sum("zk_notified"),
    }
    if observed.change == model.GROWTH:
        before, after = (sum(owner is not None for owner in each) for each in _columns(observed.owners or ()))
        if not before:
            return {}, {}
        return model.zookeeper_growth(observed.members, before, after, _troubles(counts)), measured
    return model.zookeeper(observed.change, setting, _troubles(counts)), measured


def _coordinated(
    design: str, observed: ObservedChange, counts: WindowCounts, parameters: Mapping[str, Any]
) -> tuple[Mapping[str, model.Prediction], Mapping[str, int]]:
    if observed.change not in (*group_model.MODELLED, model.GROWTH) or not observed.members:
        return {}, {}  # a group that nobody is left in rebalances no more
    owners = observed.owners or ()
    late = counts.sum("request_answered", where=lambda count: (count.name, count.outcome) == LATE_SYNC) > 0
    had = [each for each in owners if each.before is not None]
    if observed.change == model.GROWTH and (late or not had):
        return {}, {}
    setting = group_model.GroupSetting(
        members=observed.members,
        partitions=int(parameters.get("topics", 1)) * int(parameters.get("partitions", 0)),
        released=_released_partitions(owners) if owners else None,
        moved=_moved_by_strategy(observed, parameters),
        leader_went=observed.leader_went,
        synced_late=late,
    )
    requests = counts.by("request_answered", lambda count: count.name)
    measured = {
        "JoinGroup": requests.get("JoinGroup", 0),
        "SyncGroup": requests.get("SyncGroup", 0),
        "generations": observed.rounds,
        "stopped": observed.stopped,
        "moved": observed.moved,
        "notifications": counts.sum("zk_notified"),
        "coordinator notifications": counts.sum("zk_notified", role="broker", where=lambda count: count.area == "ids"),
        "coordinator reads": counts.sum("zk_op", role="broker", where=_watching),
    }
    if observed.change == model.GROWTH:
        return group_model.predict_growth(design, observed.members, len(had), setting.moved), measured
    return group_model.predict(design, observed.change, setting), measured


def _watching(count: EventCount) -> bool:
    return count.step == WATCHING and count.name in READS


def _moved_by_strategy(observed: ObservedChange, parameters: Mapping[str, Any]) -> int | None:
    """How many partitions move if the assignor reassigns everything, by the owners' ids before and after the change.

    None if some members own nothing.
    """
    owners, members = observed.owners or (), observed.members or 0
    before, after = (sorted({owner for owner in each if owner}) for each in _columns(owners))
    strategy = str(parameters.get("strategy") or group_model.RANGE)
    partitions = [(each.topic, each.partition) for each in owners]
    if observed.change == model.RESTART:
        went = {owner for owner in before if owner not in after}
        staying = [owner for owner in before if owner not in went]
        if len(before) != members or len(after) != members:
            return None
        away = group_model.moved_by_strategy(strategy, partitions, before, staying)
        back = group_model.moved_by_strategy(strategy, partitions, staying, after)
        return away + back if away is not None and back is not None else None
    if observed.change == model.GROWTH:
        more = [(each.topic, each.partition) for each in owners if each.before is None]
        had = [each for each in partitions if each not in more]
        return group_model.moved_by_strategy(strategy, had, before, after, more) if before == after else None
    if len(after) != members or len(before) != members + (-1 if observed.change == model.JOIN else 1):
        return None
    return group_model.moved_by_strategy(strategy, partitions, before, after)


def _columns(owners: Sequence[PartitionOwners]) -> tuple[list[str | None], list[str | None]]:
    return [each.before for each in owners], [each.after for each in owners]


def _released_partitions(owners: Sequence[PartitionOwners]) -> int:
    """How many partitions the departed member owned: an owner from before that owns nothing now has left."""
    still = {each.after for each in owners}
    return sum(1 for each in owners if each.before is not None and each.before not in still)


def _troubles(counts: WindowCounts) -> model.Troubles:
    """The model's input from the trace: failed attempts, offset reads, failed claims."""

    def steps(step: str, *, reads: bool, failed: bool = False) -> int:
        return counts.sum(
            "zk_op",
            where=lambda count: (
                count.step == step and (count.name in READS) is reads and (count.outcome != OK or not failed)
            ),
        )

    return model.Troubles(
        attempts=counts.sum("attempt_ended", where=lambda count: count.outcome == CONFLICT),
        offset_reads=steps("R8", reads=True),
        conflicts=steps("R11", reads=False, failed=True),
    )
