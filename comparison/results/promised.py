"""The promises that a user of a consumer group goes by: the same of every design, each with what breaks it.

That nothing is delivered twice is none of them: no design promises it (`comparison.pipeline.figures.unpromised`). How
long a partition stands still, and what moves, is a price and not a promise.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comparison.results.keys import FORMING
from comparison.results.outcomes import Kind, VerdictOutcome
from comparison.results.refusals import refused_as_set, refused_in_words

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.results.run import Run, Verdict

#: The check of whether every partition has one owner again.
SETTLES = "settles"


def _always(_run: Run) -> str:
    return ""


@dataclass(frozen=True, slots=True)
class Promise:
    """A promise: broken by a figure that is not 0, or by a check on a design's promise that came out otherwise."""

    name: str
    meaning: str
    figures: Mapping[str, str]  #: by names of metrics, as they are shown; unknown if one of these is
    if_known: Mapping[str, str]  #: likewise, but these need not be known
    checks: tuple[str, ...]  #: on promises of designs that this one includes, by their names
    not_asked: Callable[[Run], str] = _always  #: why it was not asked; '' if it was
    others: Callable[[Run], str] = _always  #: what else broke it; '' if nothing did

    def failed(self, run: Run) -> list[Verdict]:
        """The checks on it that are not as expected, so that it was broken against the model."""
        verdicts = (verdict_on(run, check) for check in self.checks)
        return [each for each in verdicts if each is not None and each.outcome == VerdictOutcome.NOT_EXPECTED]


def _without_commits(run: Run) -> str:
    return "nothing was committed" if run.metrics.get("commit_requests") == 0 and not _any(run, "commits") else ""


def _without_pauses(run: Run) -> str:
    names = ("pauses_dropped", "pauses_moved", "pauses_outlasting")
    return "" if any(_any(run, name) for name in names) else "no partition was paused in a rebalance"


def _without_changes(run: Run) -> str:
    if verdict_on(run, SETTLES) is None:
        return "the scenario does not wait for it"
    return "" if any(change.change != FORMING for change in run.changes) else "no change was made in this run"


def _unread(run: Run) -> str:
    added = [change.added for change in run.changes if change.added is not None]
    unowned = sum(each.partitions - each.owned for each in added)
    return f"added partitions without an owner: {unowned}" if unowned else ""


def _as_set(run: Run) -> str:
    if run.refusals and all(refused_as_set(each) for each in run.refusals):
        return "a member was refused as the group's limit or its instance id demand"
    return ""


def _given_up(run: Run) -> str:
    failed = (run.metrics.get("rebalances_failed") or 0) - sum(each.asked for each in run.refusals)
    return shown_as("rebalances given up", failed) if failed > 0 else ""


def _refused(run: Run) -> str:
    return refused_in_words(each for each in run.refusals if not refused_as_set(each))


#: All promises, in display order.
PROMISES: tuple[Promise, ...] = (
    Promise(
        "every record is delivered",
        "Each record that was acknowledged to its producer reached a member, once or more often.",
        {"lost": "lost"},
        {},
        ("no record lost",),
    ),
    Promise(
        "no record is skipped",
        "No reset of a position left out records that came after the group.",
        {"skipped": "skipped by a reset"},
        {},
        ("reset only without a commit",),
    ),
    Promise(
        "only the owner delivers",
        "No two members delivered a partition at once, and none delivered one that another one owned.",
        {"two_delivering_partition_s": "two delivering, partition-s", "stale_deliveries": "delivered by a non-owner"},
        {},
        (),
    ),
    Promise(
        "only the owner commits",
        "No commit was accepted from a member while another one owned the partition.",
        {"stale_writes": "commits by a non-owner"},
        {},
        ("no stale write", "old commits refused", "old coordinator silenced", "no write of an ended session"),
        not_asked=_without_commits,
    ),
    Promise(
        "no offset moves back",
        "No accepted commit moved the committed offset of a partition back.",
        {"moved_back": "offsets moved back"},
        {},
        ("no offset moved back",),
        not_asked=_without_commits,
    ),
    Promise(
        "reading goes on where it was committed",
        "Whoever takes over a partition begins at its committed offset, and no committed offset was lost.",
        {"started_behind": "started behind a commit"},
        {
            "reset_behind": "reset behind a commit",
            "final_behind": "final offsets behind the last commit",
            "final_beyond": "final offsets beyond the log",
            "old_offsets_used": "begun at an old topic's offset",
        },
        ("final offsets", "no commit lost", "offsets carried over", "offsets kept", "begins the new topic anew"),
        not_asked=_without_commits,
    ),
    Promise(
        "every partition has an owner again",
        "After each change and each fault every partition had one owner, and so had those that were added.",
        {},
        {"left_unnamed": "partitions without an owner at the end"},
        (SETTLES, "new partitions read", "owner znodes kept"),
        not_asked=_without_changes,
        others=_unread,
    ),
    Promise(
        "no member gives up",
        "No member gave up a rebalance, so that its application got an error; refusals are another promise.",
        {},
        {},
        ("nobody gives up", "outlasts the session"),
        others=_given_up,
    ),
    Promise(
        "every member gets in",
        "The group refused no member, except for its limit of members, or for another member's instance id.",
        {},
        {},
        ("nobody is refused",),
        not_asked=_as_set,
        others=_refused,
    ),
    Promise(
        "a paused partition stays paused",
        "No rebalance ended the pause of a partition that stayed with its member.",
        {"pauses_dropped": "pauses dropped by a rebalance"},
        {},
        ("pauses kept",),
        not_asked=_without_pauses,
    ),
)


def verdict_on(run: Run, check: str) -> Verdict | None:
    return next((each for each in run.verdicts if each.check == check and each.kind == Kind.PROMISE), None)


def _any(run: Run, name: str) -> bool:
    return bool(run.metrics.get(name))


def shown_as(words: str, value: float) -> str:
    return f"{words}: {value:,.10g}"
