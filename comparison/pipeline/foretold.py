"""What a change cost beside what it must cost: the counts of a trace against those of comparison.pipeline.model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.pipeline import model
from comparison.pipeline.counts import READS
from comparison.pipeline.result import Counted

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from pyspark.sql import Row

    from comparison.pipeline.tallies import Tallies

    Owners = Sequence[tuple[str | None, str | None]]

ZOOKEEPER, EAGER = "zookeeper", "eager"
OK, CONFLICT = "ok", "conflict"


def counted(
    design: str, row: Row, tally: Tallies, parameters: Mapping[str, Any], owners: Owners | None
) -> list[Counted]:
    """The counts that the model foretells for a change, beside what was counted; none where it does not reach.

    `owners`: of every partition, before and after. The model does not reach attempts that failed otherwise than by
    a conflict, nor, in `eager`, members of several streams: each is a member of the group by itself, and how many
    of those that come at once find the same round is a matter of time.
    """
    if row.change not in model.MODELLED or row.members is None:
        return []
    setting = model.Setting(
        members=row.members,
        topics=int(parameters.get("topics", 1)),
        partitions=int(parameters.get("topics", 1)) * int(parameters.get("partitions", 0)),
        brokers=int(parameters.get("brokers", 1)),
        streams=int(parameters.get("streams", 1)),
        released=_owned_by_who_went(owners) if owners is not None else None,
        one_read=parameters.get("settings", {}).get("watch.reads") == "one",
    )
    if design == ZOOKEEPER and tally.sum("attempt_ended", where=lambda count: count.outcome not in (OK, CONFLICT)) == 0:
        foretold = model.zookeeper(row.change, setting, _troubles(tally))
        measured = {
            "reads": tally.operations(reads=True),
            "writes": tally.operations(reads=False, commits=False),
            "notifications": tally.sum("zk_notified"),
        }
    elif design == EAGER and setting.streams == 1:
        foretold = model.eager(row.change, setting)
        requests = tally.by("request_answered", lambda count: str(count.name))
        measured = {name: requests.get(name, 0) for name in foretold}
    else:
        return []
    return [
        Counted(what=name, measured=measured[name], model=told.count, formula=told.formula)
        for name, told in foretold.items()
    ]


def _owned_by_who_went(owners: Owners) -> int:
    """Partitions of owners that own nothing any more: when one goes, nobody else is left without."""
    still = {after for _, after in owners}
    return sum(1 for before, _ in owners if before is not None and before not in still)


def _troubles(tally: Tallies) -> model.Troubles:
    """What the model takes from the trace: attempts that failed, offsets that were read, claims that failed."""

    def steps(step: str, *, reads: bool, failed: bool = False) -> int:
        return tally.sum(
            "zk_op",
            where=lambda row: row.step == step and (row.name in READS) is reads and (row.outcome != OK or not failed),
        )

    return model.Troubles(
        attempts=tally.sum("attempt_ended", where=lambda row: row.outcome == CONFLICT),
        offset_reads=steps("R8", reads=True),
        conflicts=steps("R11", reads=False, failed=True),
    )
