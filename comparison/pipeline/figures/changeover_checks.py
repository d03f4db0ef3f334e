"""Decide the checks on a group that changes over to the consumer protocol, member by member, and back.

The counts are those of a real 4.1.1 with members of librdkafka, where they were the same in all repeats.
As in comparison.pipeline.figures.checks: a run's figures in, an outcome and its reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures.checks import EXPECTED, NOT_EXPECTED, UNKNOWN, counted_noun
from comparison.pipeline.figures.model import RESTART

if TYPE_CHECKING:
    from comparison.pipeline.figures.checks import CheckResult
    from comparison.pipeline.result import Change, Run

CLASSIC_TYPE, CONSUMER_TYPE = "classic", "consumer"
_NOT_THERE_AND_BACK = "not every member was restarted there and back"


def changes_over_and_back(run: Run) -> CheckResult:
    """The first member of the new protocol makes it a consumer group, and the last one that goes a classic one again.

    Its epochs go on from the generations, and back: two a restart.
    """
    restarts = _restarts(run)
    if not restarts:
        return UNKNOWN, _NOT_THERE_AND_BACK
    if any(not each.group_type or each.generation is None for each in restarts):
        return UNKNOWN, "the trace does not show the group's type and epochs"
    types = [each.group_type for each in restarts]
    epochs = [each.generation or 0 for each in restarts]
    summary = f"{_in_order(types)}; epochs {', '.join(map(str, epochs))}"
    expected = [CONSUMER_TYPE] * (len(restarts) - 1) + [CLASSIC_TYPE]
    goes_on = all(each.rounds == 2 for each in restarts) and epochs == [epochs[0] + 2 * n for n in range(len(epochs))]
    return (EXPECTED if types == expected and goes_on else NOT_EXPECTED), summary


def stops_by_protocol(run: Run) -> CheckResult:
    """A classic member with range stops all it has at each epoch, one of the new protocol only what moves."""
    restarts = _restarts(run)
    if not restarts:
        return UNKNOWN, _NOT_THERE_AND_BACK
    members = len(restarts) // 2
    partitions = int(run.parameters.get("partitions", 0)) * int(run.parameters.get("topics", 1))
    if members < 2 or partitions % (members * (members - 1)):
        return (
            UNKNOWN,
            f"{counted_noun(partitions, 'partition')} do not divide evenly among {members} and {members - 1}",
        )
    stopped = [each.stopped for each in restarts]
    modelled = [_stopped(number, members, partitions) for number in range(len(restarts))]
    summary = f"{', '.join(map(str, stopped))} partitions stopped, by restarts"
    if stopped != modelled:
        return NOT_EXPECTED, f"{summary}, instead of {', '.join(map(str, modelled))}"
    return EXPECTED, f"{summary}, as on a real broker"


def nothing_repeated(run: Run) -> CheckResult:
    """What members of one protocol committed, those of the other go on from."""
    behind, commits = run.metrics["started_behind"], run.metrics["commits"]
    if not _restarts(run) or behind is None or not commits:
        return UNKNOWN, _NOT_THERE_AND_BACK if not _restarts(run) else "no commit was traced"
    summary = f"{counted_noun(commits, 'commit')}; {counted_noun(behind, 'delivery', 'deliveries')} started behind one"
    again = f"{counted_noun(run.metrics['duplicates'] or 0, 'record')} delivered again"
    return (NOT_EXPECTED if behind else EXPECTED), f"{summary}; {again}"


def _restarts(run: Run) -> list[Change]:
    """Those of every member there, and then back; none if there are not as many."""
    found = [change for change in run.changes if change.change == RESTART]
    return found if found and len(found) == 2 * (found[0].members or 0) else []


def _stopped(number: int, members: int, partitions: int) -> int:
    """The partitions that the others stop at a restart: it leaves, and they have more; it joins, and they have less."""
    done = number % members
    classic = members - 1 - done if number < members else done
    share, without = partitions // members, partitions // (members - 1)
    return classic * (share + without) + (members - 1 - classic) * (without - share)


def _in_order(types: list[str]) -> str:
    """Each type once, as long as it stays."""
    changed = [kind for place, kind in enumerate(types) if not place or types[place - 1] != kind]
    return f"a {' group, then a '.join(changed)} group"
