"""The verdicts: a table of the checks on each run, comparable with what the original consumers did.

There are three kinds of check, because a failure means something else in each:

- *promise*: what the design promises under all circumstances. A broken promise is a bug of ours.
- *history*: a fault that the historical design is known for. If it does not show, we have not rebuilt it faithfully.
- *model*: an exact count.

What no design promises is measured and shown, but not judged: `comparison.pipeline.figures.unpromised`.

A fix that is switched on (`fix.*` of the zookeeper design) changes a check: the historical fault must then not
happen, or is not judged where the fix only makes it rarer. Counts are predicted only without fixes.

A check that could not run is unknown, never a pass. A run that was cut short, or lost part of its trace, is judged
only by what it shows. A promise that it seems to have kept is unknown, and so is anything that did not happen before
the run ended.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

import msgspec

from comparison.pipeline.figures import addition_checks as a
from comparison.pipeline.figures import changeover_checks as x
from comparison.pipeline.figures import checks as c
from comparison.pipeline.figures import group_checks as g
from comparison.pipeline.figures import membership_checks as m
from comparison.pipeline.figures import outage_checks as o
from comparison.pipeline.figures import split_checks as s
from comparison.pipeline.figures import with_settings as w
from comparison.results.keys import COMPLETE
from comparison.results.outcomes import Kind, VerdictOutcome, worst
from comparison.results.run import Run, Verdict
from kernel.designs import (
    ALL_AT_ONCE,
    CLASSIC,
    CONSUMER,
    COOPERATIVE,
    COORDINATED,
    DELAYED,
    DESIGN_NAMES,
    EAGER,
    INCREMENTAL,
    RECONCILING,
    SERVER,
    STATIC,
    ZOOKEEPER,
)
from kernel.suggestions import unknown

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

ALL = ("*",)
ENSEMBLE = ("split-brain-ensemble",)
CUTS = ("split-brain", *ENSEMBLE)
#: A member is frozen beyond its session.
PAUSES = ("pause", "zombie-commit")
ZOMBIES = ("zombie-commit",)
STALE = ("stale-view",)
NO_BROKER = ("double-owner-no-broker",)
#: The topic gets more partitions.
GROWING = ("partition-increase", "add-partitions", "unnoticed-partitions")
#: A group changes over to the consumer protocol, and back.
CHANGEOVER = ("group-protocol-migration",)
UNNOTICED = ("unnoticed-partitions",)
COUNTED = ("herd", "join", "leave", "crash", "idle-members", *GROWING)
#: Designs in which the counts of a restart can be predicted.
RESTARTS = tuple(design for design in COORDINATED if design != DELAYED)
SLOW = ("slow-member",)
#: Their groups wait for a slow member, but go on delivering.
PATIENT = tuple(design for design in INCREMENTAL if design in CLASSIC)
FAILOVER = ("coordinator-failover",)
ROLLING = ("rolling-restart",)
BACK, BACK_LATE = ("crash-and-return",), ("crash-and-return-late",)
DUPLICATE = ("duplicate-instance-id",)
UNSUBSCRIBING = ("unsubscribe",)
#: Designs in which unsubscribing means leaving at once.
LEAVING = tuple(design for design in COORDINATED if design not in (STATIC, DELAYED))
COPYING = ("read-process-write",)
MIGRATING = ("offset-migration",)
STRATEGIES = ("strategies",)
LAGGING = ("scale-out-under-lag",)
#: Designs in which a process that comes back is somebody else.
NAMELESS = (ZOOKEEPER, *LEAVING)
IDLE = ("idle-members",)
MIXED = ("mixed-subscriptions",)
#: Designs in which a watch tells of new partitions; in CLASSIC the leader looks from time to time.
WATCHING = tuple(design for design in DESIGN_NAMES if design not in CLASSIC)
#: Designs in which any change of the members stops all partitions.
STOPPING = (ZOOKEEPER, SERVER, *ALL_AT_ONCE)
#: Changes without a fault: under a coordinator, no member starts a partition before its previous owner stopped.
PLANNED = (
    *ROLLING,
    *STALE,
    "scale-out",
    *GROWING,
    "subscription-change",
    "protocol-migration",
    *CHANGEOVER,
    *UNSUBSCRIBING,
    *STRATEGIES,
    *LAGGING,
    *IDLE,
    *MIXED,
)
#: Played by hand: one change may come before the group has settled after another. Only safety is judged.
PLAYED = ("playground",)
#: Not where applications are slow: they do not poll every partition during a rebalance.
KEEPING = (
    "herd",
    "join",
    "leave",
    "crash",
    "scale-out",
    *GROWING,
    *ROLLING,
    *IDLE,
    *MIXED,
    *UNSUBSCRIBING,
)
TRIES, GHOST, FLAPPING = ("rebalance-failed",), ("ghost-owner",), ("flapping-member",)
OUTAGES, EXPIRIES = ("zk-leader-kill", "quorum-loss"), ("session-expiry", "session-expiry-all")
DEAF, SLOW_LINK = ("asymmetric-cut",), ("slow-link",)
#: Their members' sessions are the coordinator's.
HEARTBEATS = tuple(design for design in COORDINATED if design != SERVER)
#: Their members do not stop when they lose ZooKeeper; come back under another id.
UNSTOPPED, DYNAMIC = (ZOOKEEPER, *HEARTBEATS), tuple(design for design in DESIGN_NAMES if design != STATIC)


_NOTHING_SET: Mapping[str, str] = MappingProxyType({})


class Failing(Enum):
    """What makes a check fail."""

    SEEN = "something happened that must not happen"
    MISSED = "something did not happen often enough, which only the whole trace of a complete run shows"


SEEN, MISSED = Failing.SEEN, Failing.MISSED


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table: where it applies, and the function that decides it."""

    name: str
    kind: Kind
    designs: tuple[str, ...]
    scenarios: tuple[str, ...]
    failing: Failing
    decide: Callable[[Run], c.CheckResult]
    given: Callable[[Mapping[str, str]], bool] = w.always  #: for which of the run's settings
    except_in: tuple[str, ...] = ()  #: scenarios

    def is_about(self, design: str) -> bool:
        return _among(design, self.designs)

    def covers(self, run: Run) -> bool:
        parameters = run.parameters
        return self.judges(
            run.design, run.judged_as, named=parameters.get("checks", ()), settings=parameters.get("settings", {})
        )

    def judges(
        self, design: str, scenario: str, *, named: Collection[str] = (), settings: Mapping[str, str] = _NOTHING_SET
    ) -> bool:
        """Whether a run of a scenario, which may name further checks, is judged by this one."""
        by_name = self.name in named and not _has_several_ways(self.name)
        among = self.is_about(design) and (by_name or _among(scenario, self.scenarios))
        return among and scenario not in self.except_in and self.given(settings)


def _among(name: str, names: tuple[str, ...]) -> bool:
    return names == ALL or name in names


#: Checked against the originals: 208 runs of Kafka 0.8.2.2, 1.1.1 and librdkafka on 4.1.1.
CHECKS: tuple[Check, ...] = (
    # name                      kind            designs         scenarios                  fails by, decided by, given
    Check("no record lost", Kind.PROMISE, ALL, ALL, SEEN, c.no_record_lost),
    Check("final offsets", Kind.PROMISE, ALL, ALL, SEEN, c.final_offsets_kept),
    Check("settles", Kind.PROMISE, ALL, ALL, MISSED, c.settles, except_in=PLAYED),
    Check("no offset moved back", Kind.PROMISE, (ZOOKEEPER,), ("crash",), SEEN, c.no_offset_moved_back),
    Check("no offset moved back", Kind.PROMISE, COORDINATED, ALL, SEEN, c.no_offset_moved_back),
    Check("no stale write", Kind.PROMISE, COORDINATED, ALL, SEEN, c.no_stale_write),
    Check("old commits refused", Kind.PROMISE, COORDINATED, (*PAUSES, "split-brain"), SEEN, c.old_commits_refused),
    Check("old coordinator silenced", Kind.PROMISE, COORDINATED, ENSEMBLE, SEEN, c.old_coordinator_silenced),
    Check("zombie commits", Kind.HISTORY, (ZOOKEEPER,), PAUSES, MISSED, c.zombie_commits, w.unfenced),
    Check(
        "no write of an ended session",
        Kind.PROMISE,
        (ZOOKEEPER,),
        ZOMBIES,
        SEEN,
        c.no_write_of_an_ended_session,
        w.unfenced,
    ),
    Check(
        "two members deliver", Kind.HISTORY, (ZOOKEEPER,), PAUSES, MISSED, c.two_deliver_after_a_pause, w.fetching_on
    ),
    Check("zombie commits", Kind.HISTORY, (ZOOKEEPER,), CUTS, MISSED, c.zombie_commits_after_a_cut, w.unfenced),
    Check("no stale write", Kind.PROMISE, (ZOOKEEPER,), (*PAUSES, *CUTS), SEEN, c.no_stale_write, w.fenced),
    Check("no offset moved back", Kind.PROMISE, (ZOOKEEPER,), (*PAUSES, *CUTS), SEEN, c.no_offset_moved_back, w.fenced),
    Check("two members deliver", Kind.HISTORY, (ZOOKEEPER,), CUTS, MISSED, c.two_deliver_during_a_cut),
    Check("two members deliver", Kind.HISTORY, RECONCILING, ("split-brain",), MISSED, c.two_deliver_during_a_cut),
    Check("claims conflict", Kind.HISTORY, (ZOOKEEPER,), STALE, MISSED, s.lagging_member_conflicts, w.unsynced),
    Check("knows the group", Kind.PROMISE, (ZOOKEEPER,), STALE, SEEN, s.lagging_member_knows_the_group, w.synced),
    Check("nobody takes over", Kind.HISTORY, (ZOOKEEPER,), NO_BROKER, MISSED, s.nobody_takes_over),
    Check("never owned by two members", Kind.PROMISE, (ZOOKEEPER,), STALE, SEEN, g.never_owned_by_two),
    Check("never owned by two members", Kind.PROMISE, COORDINATED, PLANNED, SEEN, g.never_owned_by_two),
    Check("kept partitions never stop", Kind.PROMISE, INCREMENTAL, KEEPING, SEEN, g.kept_goes_on),
    Check("delay honoured", Kind.PROMISE, (DELAYED,), ("leave", "crash"), MISSED, g.delay_honoured),
    Check("generation kept", Kind.PROMISE, COORDINATED, FAILOVER, SEEN, g.generation_kept),
    Check("no commit lost", Kind.PROMISE, COORDINATED, FAILOVER, SEEN, g.acknowledged_commits_kept),
    Check("waits for the slow member", Kind.HISTORY, ALL_AT_ONCE, SLOW, MISSED, g.waits_for_the_slow_member),
    Check("waits for nobody", Kind.PROMISE, RECONCILING, SLOW, MISSED, g.waits_for_nobody),
    Check("delivers while it waits", Kind.PROMISE, PATIENT, SLOW, MISSED, g.goes_on_while_it_waits),
    Check("back without a rebalance", Kind.PROMISE, (STATIC,), BACK, SEEN, m.back_without_a_rebalance),
    Check("spared by the delay", Kind.PROMISE, (DELAYED,), BACK, SEEN, m.spared_by_the_delay),
    Check("early return does not help", Kind.HISTORY, NAMELESS, BACK, MISSED, m.early_return_does_not_help),
    Check("waits for the dead member", Kind.HISTORY, (EAGER, COOPERATIVE), BACK, MISSED, m.waits_for_the_dead),
    Check("its place is gone", Kind.HISTORY, (STATIC,), BACK_LATE, MISSED, m.its_place_is_gone),
    Check("given away after the delay", Kind.HISTORY, (DELAYED,), BACK_LATE, MISSED, m.given_away_after_the_delay),
    Check("older one is fenced", Kind.PROMISE, (STATIC,), DUPLICATE, MISSED, m.older_is_fenced),
    Check("newer one is refused", Kind.PROMISE, (CONSUMER,), DUPLICATE, MISSED, m.newer_is_refused),
    Check("taken over at once", Kind.PROMISE, LEAVING, UNSUBSCRIBING, SEEN, m.taken_over_at_once),
    Check("missed although healthy", Kind.HISTORY, (STATIC,), UNSUBSCRIBING, MISSED, m.missed_although_healthy),
    Check("offsets carried over", Kind.PROMISE, (EAGER,), MIGRATING, SEEN, m.offsets_carried_over),
    Check("fenced by epoch", Kind.PROMISE, (EAGER,), COPYING, MISSED, m.fenced_by_epoch),
    Check("copied twice", Kind.HISTORY, (EAGER,), COPYING, MISSED, m.copied_twice_without_transactions),
    Check("balance by strategy", Kind.MODEL, (EAGER,), STRATEGIES, MISSED, m.balance_by_strategy),
    Check("sticky moves the fewest", Kind.PROMISE, (EAGER,), STRATEGIES, SEEN, m.sticky_moves_the_fewest),
    Check("catches up", Kind.PROMISE, ALL, LAGGING, MISSED, m.catches_up),
    Check("no member owns two", Kind.PROMISE, ALL, IDLE, SEEN, m.one_partition_each),
    Check("idle member stops the others", Kind.HISTORY, STOPPING, IDLE, MISSED, m.idle_member_stops_all),
    Check("idle member stops nobody", Kind.PROMISE, INCREMENTAL, IDLE, SEEN, m.idle_member_stops_nobody),
    Check("new partitions read", Kind.PROMISE, ALL, GROWING, MISSED, a.new_partitions_read),
    Check("noticed at once", Kind.PROMISE, WATCHING, GROWING, MISSED, a.noticed_at_once),
    Check("noticed in time", Kind.PROMISE, CLASSIC, GROWING, MISSED, a.noticed_in_time),
    Check("unnoticed for minutes", Kind.HISTORY, CLASSIC, UNNOTICED, MISSED, a.unnoticed_for_long),
    Check("changes over and back", Kind.PROMISE, (CONSUMER,), CHANGEOVER, MISSED, x.changes_over_and_back),
    Check("stops by protocol", Kind.MODEL, (CONSUMER,), CHANGEOVER, MISSED, x.stops_by_protocol),
    Check("offsets kept", Kind.PROMISE, (CONSUMER,), CHANGEOVER, SEEN, x.nothing_repeated),
    Check("only subscribers own", Kind.PROMISE, ALL, MIXED, SEEN, m.only_subscribers_own),
    Check("counts", Kind.MODEL, DESIGN_NAMES, COUNTED, MISSED, c.counts_equal_the_model, w.unfixed),
    Check("counts", Kind.MODEL, RESTARTS, ROLLING, MISSED, c.counts_equal_the_model, w.unfixed),
    Check("gives up", Kind.HISTORY, (ZOOKEEPER,), TRIES, MISSED, o.gives_up),
    Check("outlasts the session", Kind.PROMISE, (ZOOKEEPER,), TRIES, SEEN, o.outlasts_the_session),
    Check("nobody gives up", Kind.PROMISE, COORDINATED, TRIES, SEEN, o.nobody_gives_up),
    Check("no rebalance", Kind.PROMISE, ALL, OUTAGES, SEEN, o.no_rebalance_without_zookeeper),
    Check("goes on delivering", Kind.PROMISE, UNSTOPPED, OUTAGES, SEEN, o.delivers_without_zookeeper),
    Check("stands still", Kind.HISTORY, (SERVER,), OUTAGES[1:], MISSED, o.stands_still_without_zookeeper),
    Check("everybody rebalances", Kind.HISTORY, (ZOOKEEPER,), EXPIRIES, MISSED, o.everybody_rebalances),
    Check("expiry noticed", Kind.PROMISE, (SERVER,), EXPIRIES, MISSED, o.coordinator_notices_the_expiry),
    Check("owner znodes deleted", Kind.HISTORY, (ZOOKEEPER,), GHOST, MISSED, o.owner_nodes_deleted, w.unchecked),
    Check("owner znodes kept", Kind.PROMISE, (ZOOKEEPER,), GHOST, SEEN, o.owner_nodes_kept, w.checked),
    Check("storm", Kind.HISTORY, DYNAMIC, FLAPPING, MISSED, o.storm),
    Check("no storm", Kind.PROMISE, (STATIC,), FLAPPING, SEEN, o.no_storm),
    Check("outlives the silence", Kind.HISTORY, (ZOOKEEPER, SERVER), DEAF, MISSED, o.outlives_the_silence),
    Check(
        "two members deliver", Kind.HISTORY, (ZOOKEEPER,), DEAF, MISSED, o.two_deliver_past_the_session, w.fetching_on
    ),
    Check("two members deliver", Kind.HISTORY, RECONCILING, DEAF, MISSED, o.two_deliver_past_the_session),
    Check("replaced", Kind.PROMISE, HEARTBEATS, DEAF, MISSED, o.replaces_a_silent_member),
    Check("outlasts the delay", Kind.PROMISE, ALL, SLOW_LINK, SEEN, o.outlasts_a_slow_link),
    Check("server's counters", Kind.MODEL, (ZOOKEEPER,), ("herd", "join"), MISSED, c.counters_equal_the_trace),
)


#: What these look at is the group's; where a run has several groups, nobody can say whose it is.
_ABOUT_ONE_GROUP = frozenset(
    {
        c.counts_equal_the_model,
        c.old_coordinator_silenced,
        c.two_deliver_during_a_cut,
        g.acknowledged_commits_kept,
        g.delay_honoured,
        g.generation_kept,
        g.goes_on_while_it_waits,
        g.waits_for_the_slow_member,
        o.coordinator_notices_the_expiry,
        o.everybody_rebalances,
        o.outlives_the_silence,
        o.no_storm,
        o.outlasts_a_slow_link,
        o.replaces_a_silent_member,
        o.storm,
        o.two_deliver_past_the_session,
    }
)


def _has_several_ways(name: str) -> bool:
    """Whether it depends on the scenario how this check is decided."""
    ways = {(design, check.decide) for check in CHECKS if check.name == name for design in check.designs}
    return len(ways) > len({design for design, _ in ways})


def why_not_judged(name: str, like: str) -> str:
    """Why a scenario that is like another one ('': like none) cannot name this check; '' if it can."""
    names = list(dict.fromkeys(check.name for check in CHECKS))
    if name not in names:
        return unknown("check", name, names, hint="`rebalance-lab scenarios --steps` lists all")
    known = dict.fromkeys(each for check in CHECKS if check.name == name for each in check.scenarios)
    if _has_several_ways(name) and like not in known:
        return f"{name!r} is decided in several ways. Say which with like = NAME, one of {', '.join(known)}"
    return ""


def judge(run: Run) -> Run:
    """The run with its verdicts; unknown if no check covers it."""
    covering = {(check.name, check.decide): check for check in reversed(CHECKS) if check.covers(run)}
    checked = [_verdict(check, run) for check in CHECKS if covering.get((check.name, check.decide)) is check]
    verdicts = [verdict for verdict in checked if verdict is not None]
    return msgspec.structs.replace(run, verdicts=verdicts, verdict=worst(v.outcome for v in verdicts))


def _verdict(check: Check, run: Run) -> Verdict | None:
    result = check.decide(run)
    if result is None:
        return None
    outcome, reason = result
    if run.problems:
        return _unknown(check, f"{_first_problem(run)}; as recorded: {reason}")
    if len(run.groups) > 1 and check.decide in _ABOUT_ONE_GROUP:
        return _unknown(check, f"the run has {len(run.groups)} groups, this is about one; as recorded: {reason}")
    open_ = {
        VerdictOutcome.EXPECTED: check.kind is not Kind.HISTORY,
        VerdictOutcome.NOT_EXPECTED: check.failing is MISSED,
    }
    if open_.get(outcome, False) and (doubt := _doubt(run)):
        outcome, reason = VerdictOutcome.UNKNOWN, f"{doubt}; as recorded: {reason}"
    return Verdict(check=check.name, kind=check.kind, outcome=outcome, reason=reason)


def _unknown(check: Check, reason: str) -> Verdict:
    return Verdict(check=check.name, kind=check.kind, outcome=VerdictOutcome.UNKNOWN, reason=reason)


_ENDS = {"failed": "the run failed", "interrupted": "the run was interrupted"}


def _first_problem(run: Run) -> str:
    """Records that are missing, doubled or out of order can make anything appear, and hide anything."""
    first, *more = run.problems
    return f"{first} (and {c.counted_noun(len(more), 'more problem')} of the trace)" if more else first


def _doubt(run: Run) -> str:
    """Why the trace may not show everything that happened, though nothing is wrong with it; '' if it does."""
    if run.outcome == COMPLETE:
        return ""
    return _ENDS.get(run.outcome, "the trace does not say how the run ended")
