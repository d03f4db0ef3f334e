"""Decide the checks on topics that appear under a pattern or are recreated, and on patterns that change.

As in comparison.pipeline.figures.deciding: a run's figures in, an outcome and its reason out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.pipeline.figures.addition_checks import LATE_S, noticed
from comparison.pipeline.figures.deciding import EXPECTED, NOT_EXPECTED, UNKNOWN, counted_noun, needs, shown, timer_s

if TYPE_CHECKING:
    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.run import Change, Run

#: The least time between two searches of a KIP-848 coordinator for topics that match
#: (GroupMetadataManager.REGEX_BATCH_REFRESH_MIN_INTERVAL_MS, 4.1.1).
SEARCH_S = 10.0
CREATED, SUBSCRIBED = "topic-created", "subscribe"
_NEEDED = "a topic that is created under a pattern, and a rebalance"
_OF_NEW = "a topic that was deleted and created again, and deliveries from it"
_BEGUN = "of the new topic begun at an offset of the old one"


@needs(_NEEDED)
def noticed_by_a_search(run: Run) -> CheckResult:
    """The coordinator looks for topics that match at a heartbeat, if its last search is ten seconds old (KIP-848)."""
    within_s = SEARCH_S + (timer_s(run, "heartbeat_ms") or 0.0) + LATE_S
    return noticed(run, within_s, f"a search should find it within {within_s:g} s")


@needs(_NEEDED)
def one_rebalance_for_all(run: Run) -> CheckResult:
    """A topic that appears costs the group one rebalance, however many members have a pattern that it matches."""
    change = _created(run)
    summary = f"{counted_noun(change.rounds, 'rebalance')} of {counted_noun(change.members or 0, 'member')}"
    return (EXPECTED if change.rounds == 1 else NOT_EXPECTED), summary


@needs(_NEEDED)
def each_rebalances_for_itself(run: Run) -> CheckResult:
    """Each member is notified of the topic, and rebalances for itself: as many rebalances as members (a herd)."""
    change = _created(run)
    done, members = change.attempts - change.attempts_failed, change.members or 0
    summary = (
        f"{counted_noun(done, 'rebalance')} of {counted_noun(members, 'member')}, "
        f"{counted_noun(change.notifications, 'notification')}; "
        f"{counted_noun(change.attempts_failed, 'attempt')} failed"
    )
    return (EXPECTED if done >= members <= change.notifications else NOT_EXPECTED), summary


@needs("members that change their pattern")
def rebalances_for_each_member(run: Run) -> CheckResult:
    """Each member that changes its pattern costs the group a rebalance of its own, or more."""
    changes = [change for change in run.changes if change.change == SUBSCRIBED]
    if not changes:
        return UNKNOWN, "no member changed its subscription"
    rounds = sum(change.rounds for change in changes)
    summary = f"{counted_noun(rounds, 'rebalance')} for {counted_noun(len(changes), 'member')} with another pattern"
    return (EXPECTED if all(change.rounds for change in changes) else NOT_EXPECTED), summary


@needs(_OF_NEW)
def old_offsets_used(run: Run) -> CheckResult:
    """What was committed of a deleted topic stays, and the group begins there in the new one of that name."""
    used = _old_offsets_used(run)
    return (EXPECTED if used else NOT_EXPECTED), f"{counted_noun(used, 'partition')} {_BEGUN}"


@needs(_OF_NEW)
def begins_anew(run: Run) -> CheckResult:
    """Committed offsets end with their topic, so the old one's do not decide where the new one is begun.

    Brokers delete them when they learn that the partitions are gone (GroupCoordinator.handleDeletedPartitions, 3.9).
    """
    used = _old_offsets_used(run)
    if used:
        return NOT_EXPECTED, f"{counted_noun(used, 'partition')} {_BEGUN}"
    return EXPECTED, f"no partition {_BEGUN}"


def _old_offsets_used(run: Run) -> int:
    """In how many partitions; raises `NotShown` if none of a recreated topic was begun."""
    return int(shown(run.metrics["old_offsets_used"], "no partition of a recreated topic was begun"))


def _created(run: Run) -> Change:
    """The change in which a topic was created. Raises `NotShown` if nobody rebalanced for it."""
    made = (change for change in run.changes if change.change == CREATED and change.added is not None)
    change = shown(next(made, None), "no topic that the group wants was created")
    return shown(change if change.rounds else None, "no rebalance began after the topic was created")
