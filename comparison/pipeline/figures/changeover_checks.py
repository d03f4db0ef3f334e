"""Decide the checks on a group that changes over to the consumer protocol, member by member, and back.

The counts are those of a real 4.1.1 with members of librdkafka, where they were the same in all repeats.
As in comparison.pipeline.figures.deciding: a run's figures in, an outcome and its reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures.deciding import EXPECTED, NOT_EXPECTED, UNKNOWN, counted_noun, needs, partitions_of
from comparison.pipeline.figures.model import RESTART
from kernel.designs import INCREMENTAL

if TYPE_CHECKING:
    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.run import Change, Run

CLASSIC_TYPE, CONSUMER_TYPE = "classic", "consumer"
_NOT_THERE_AND_BACK = "not every member was restarted there and back"


@needs("every member restarted with the other protocol, and back")
def changes_over_and_back(run: Run) -> CheckResult:
    """The first member of the new protocol makes it a consumer group, and the last one that goes a classic one again.

    Its epochs go on from the generations, and back: two a restart. Only the last one has three if its members are
    incremental, for which a classic group needs two rounds.
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
    incremental = run.parameters.get("changed_from") in INCREMENTAL
    rounds = [2] * (len(restarts) - 1) + [3 if incremental else 2]
    # Whoever syncs after another one has rejoined is sent back to join, with what it still has to give up: one round
    # more for each such attempt, as in comparison.pipeline.figures.group_model.
    further = [0] * (len(restarts) - 1) + [restarts[-1].attempts_failed if incremental else 0]
    as_many = all(
        least <= each.rounds <= least + more for each, least, more in zip(restarts, rounds, further, strict=True)
    )
    goes_on = all(
        after == before + each.rounds for before, after, each in zip(epochs, epochs[1:], restarts[1:], strict=False)
    )
    return (EXPECTED if types == expected and as_many and goes_on else NOT_EXPECTED), summary


@needs(
    "every member restarted with the other protocol, and back, with partitions that divide evenly among all members, "
    "and one fewer"
)
def stops_by_protocol(run: Run) -> CheckResult:
    """A classic member with range stops all it has at each epoch, any other one only what moves."""
    restarts = _restarts(run)
    if not restarts:
        return UNKNOWN, _NOT_THERE_AND_BACK
    members = len(restarts) // 2
    partitions = partitions_of(run)
    if members < 2 or partitions % (members * (members - 1)):
        return (
            UNKNOWN,
            f"{counted_noun(partitions, 'partition')} do not divide evenly among {members} and {members - 1}",
        )
    stopped = [each.stopped for each in restarts]
    incremental = run.parameters.get("changed_from") in INCREMENTAL
    modelled = [_stopped(number, members, partitions, incremental=incremental) for number in range(len(restarts))]
    summary = f"{', '.join(map(str, stopped))} partitions stopped, by restarts"
    if stopped != modelled:
        return NOT_EXPECTED, f"{summary}, instead of {', '.join(map(str, modelled))}"
    return EXPECTED, summary


@needs("every member restarted with the other protocol, and back, and a commit that the authority accepted")
def nothing_repeated(run: Run) -> CheckResult:
    """Members of one protocol go on from what those of the other committed."""
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


def _stopped(number: int, members: int, partitions: int, *, incremental: bool) -> int:
    """The partitions that the others stop at a restart: it leaves, and they have more; it joins, and they have less."""
    done = number % members
    classic = 0 if incremental else members - 1 - done if number < members else done
    share, without = partitions // members, partitions // (members - 1)
    return classic * (share + without) + (members - 1 - classic) * (without - share)


def _in_order(types: list[str]) -> str:
    """Each type once, as long as it stays."""
    changed = [kind for place, kind in enumerate(types) if not place or types[place - 1] != kind]
    return f"a {' group, then a '.join(changed)} group"
