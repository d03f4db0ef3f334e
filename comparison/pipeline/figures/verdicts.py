"""The verdicts: a table of the checks on each run, comparable with what the original consumers did.

There are three kinds of check, because a failure means something else in each:

- *promise*: what the design promises under all circumstances. A broken promise is a bug of ours.
- *history*: a fault that the historical design is known for. If it does not show, we have not rebuilt it faithfully.
- *model*: an exact count.

What no design promises is measured and shown, but not judged: `comparison.pipeline.figures.unpromised`.

A fix that is switched on (`fix.*` of the zookeeper design) changes a check: the historical fault must then not
happen, or is not judged where the fix only makes it rarer. Counts are predicted only without fixes.

A check that could not run is unknown, never a pass. A run that was cut short, or lost part of its trace, is judged
only by what it shows. A promise that it seems to have kept is unknown, and so is what had not happened by its end.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.pipeline.figures import (
    addition_checks,
    application_checks,
    changeover_checks,
    checks,
    group_checks,
    membership_checks,
    outage_checks,
    refusals,
    reset_checks,
    split_checks,
    standstill_checks,
    topic_checks,
    with_settings,
)
from comparison.pipeline.figures.design_traits import (
    DYNAMIC,
    HEARTBEATS,
    LEAVING,
    LISTENING,
    NAMELESS,
    RESTARTS,
    STOPPING,
    UNSTOPPED,
    WATCHING,
)
from comparison.results.outcomes import Kind
from kernel.designs import (
    ALL_AT_ONCE,
    CLASSIC,
    CLASSIC_INCREMENTAL,
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

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from comparison.pipeline.figures.deciding import CheckResult
    from comparison.results.run import Run

#: Played by hand: one change may come before the group has settled after another. Only safety is judged.
PLAYED = ("playground",)
_NOTHING_SET: Mapping[str, str] = MappingProxyType({})


class Failing(Enum):
    """What makes a check fail."""

    SEEN = "something happened that must not happen"
    MISSED = "something did not happen often enough, which only the whole trace of a complete run shows"


SEEN, MISSED = Failing.SEEN, Failing.MISSED


@dataclass(frozen=True, slots=True)
class Check:
    """One row of the table: where it applies, and the function that decides it.

    A scenario says by which checks it is judged, by their keys.
    """

    name: str
    kind: Kind
    designs: tuple[str, ...]
    failing: Failing
    decide: Callable[[Run], CheckResult]
    given: Callable[[Mapping[str, str]], bool] = with_settings.always  #: for which of the run's settings
    key: str = ""  #: its name, if that is not another row's as well
    everywhere: bool = False  #: judges every scenario, but for these:
    except_in: tuple[str, ...] = ()
    unless: frozenset[str] = frozenset()  #: nor those that name one of these checks

    def is_about(self, design: str) -> bool:
        return design in self.designs

    def covers(self, run: Run) -> bool:
        named, settings = run.parameters.get("checks", ()), run.parameters.get("settings", {})
        return self.judges(run.design, named, settings, scenario=run.scenario)

    def judges(
        self, design: str, named: Collection[str], settings: Mapping[str, str] = _NOTHING_SET, *, scenario: str = ""
    ) -> bool:
        """Whether a run of a scenario that names these checks is judged by this one."""
        asked = (self.everywhere and self.unless.isdisjoint(named)) or self.is_named(named)
        return asked and self.is_about(design) and scenario not in self.except_in and self.given(settings)

    def is_named(self, named: Collection[str]) -> bool:
        """By its key; or by its name, where that says how it is decided."""
        return (self.key or self.name) in named or (self.name in named and not has_several_ways(self.name))


#: Name, kind, designs, fails by, decided by, given. Checked against 208 runs of originals: 0.8.2.2, 1.1.1, librdkafka.
CHECKS: tuple[Check, ...] = (
    Check("no record lost", Kind.PROMISE, DESIGN_NAMES, SEEN, checks.no_record_lost, everywhere=True),
    Check("final offsets", Kind.PROMISE, DESIGN_NAMES, SEEN, checks.final_offsets_kept, everywhere=True),
    Check("settles", Kind.PROMISE, DESIGN_NAMES, MISSED, checks.settles, everywhere=True, except_in=PLAYED),
    Check(
        "nobody is refused",
        Kind.PROMISE,
        DESIGN_NAMES,
        SEEN,
        refusals.nobody_is_refused,
        everywhere=True,
        unless=refusals.EXPECTED_BY,
    ),
    Check("refused for good", Kind.HISTORY, DESIGN_NAMES, MISSED, refusals.refused_for_good),
    Check("no common strategy", Kind.HISTORY, CLASSIC, MISSED, refusals.no_common_strategy),
    Check(
        "claims conflict", Kind.HISTORY, (ZOOKEEPER,), MISSED, refusals.strategies_conflict, key="strategies conflict"
    ),
    Check("full group", Kind.PROMISE, HEARTBEATS, MISSED, refusals.full_group_refuses),
    Check("no offset moved back", Kind.PROMISE, (ZOOKEEPER,), SEEN, checks.no_offset_moved_back),
    Check("no offset moved back", Kind.PROMISE, COORDINATED, SEEN, checks.no_offset_moved_back, everywhere=True),
    Check("no stale write", Kind.PROMISE, COORDINATED, SEEN, checks.no_stale_write, everywhere=True),
    Check("old commits refused", Kind.PROMISE, COORDINATED, SEEN, checks.old_commits_refused),
    Check("old coordinator silenced", Kind.PROMISE, COORDINATED, SEEN, checks.old_coordinator_silenced),
    Check(
        "zombie commits",
        Kind.HISTORY,
        (ZOOKEEPER,),
        MISSED,
        checks.zombie_commits,
        with_settings.unfenced,
        key="zombie commits after a pause",
    ),
    Check(
        "no write of an ended session",
        Kind.PROMISE,
        (ZOOKEEPER,),
        SEEN,
        checks.no_write_of_an_ended_session,
        with_settings.unfenced,
    ),
    Check(
        "two members deliver",
        Kind.HISTORY,
        (ZOOKEEPER,),
        MISSED,
        checks.two_deliver_after_a_pause,
        with_settings.fetching_on,
        key="two members deliver after a pause",
    ),
    Check(
        "zombie commits",
        Kind.HISTORY,
        (ZOOKEEPER,),
        MISSED,
        checks.zombie_commits_after_a_cut,
        with_settings.unfenced,
        key="zombie commits after a cut",
    ),
    Check("no stale write", Kind.PROMISE, (ZOOKEEPER,), SEEN, checks.no_stale_write, with_settings.fenced),
    Check(
        "no offset moved back",
        Kind.PROMISE,
        (ZOOKEEPER,),
        SEEN,
        checks.no_offset_moved_back,
        with_settings.fenced,
        key="no offset moved back if fenced",
    ),
    Check(
        "two members deliver",
        Kind.HISTORY,
        (ZOOKEEPER,),
        MISSED,
        checks.two_deliver_during_a_cut,
        key="two members deliver during a cut",
    ),
    Check(
        "two members deliver",
        Kind.HISTORY,
        RECONCILING,
        MISSED,
        checks.two_deliver_during_a_cut,
        key="two members deliver while cut off from the coordinator",
    ),
    Check(
        "claims conflict",
        Kind.HISTORY,
        (ZOOKEEPER,),
        MISSED,
        split_checks.lagging_member_conflicts,
        with_settings.unsynced,
    ),
    Check(
        "knows the group",
        Kind.PROMISE,
        (ZOOKEEPER,),
        SEEN,
        split_checks.lagging_member_knows_the_group,
        with_settings.synced,
    ),
    Check("nobody takes over", Kind.HISTORY, (ZOOKEEPER,), MISSED, split_checks.nobody_takes_over),
    Check("never owned by two members", Kind.PROMISE, (ZOOKEEPER,), SEEN, group_checks.never_owned_by_two),
    Check(
        "never owned by two members",
        Kind.PROMISE,
        COORDINATED,
        SEEN,
        group_checks.never_owned_by_two,
        key="never owned by two members under a coordinator",
    ),
    Check("kept partitions never stop", Kind.PROMISE, INCREMENTAL, SEEN, group_checks.kept_goes_on),
    Check("delay honoured", Kind.PROMISE, (DELAYED,), MISSED, group_checks.delay_honoured),
    Check("generation kept", Kind.PROMISE, COORDINATED, SEEN, group_checks.generation_kept),
    Check("no commit lost", Kind.PROMISE, COORDINATED, SEEN, group_checks.acknowledged_commits_kept),
    Check("waits for the slow member", Kind.HISTORY, ALL_AT_ONCE, MISSED, group_checks.waits_for_the_slow_member),
    Check("waits for nobody", Kind.PROMISE, RECONCILING, MISSED, group_checks.waits_for_nobody),
    Check("delivers while it waits", Kind.PROMISE, CLASSIC_INCREMENTAL, MISSED, group_checks.goes_on_while_it_waits),
    Check("back without a rebalance", Kind.PROMISE, (STATIC,), SEEN, membership_checks.back_without_a_rebalance),
    Check("spared by the delay", Kind.PROMISE, (DELAYED,), SEEN, membership_checks.spared_by_the_delay),
    Check("early return does not help", Kind.HISTORY, NAMELESS, MISSED, membership_checks.early_return_does_not_help),
    Check(
        "waits for the dead member", Kind.HISTORY, (EAGER, COOPERATIVE), MISSED, membership_checks.waits_for_the_dead
    ),
    Check("its place is gone", Kind.HISTORY, (STATIC,), MISSED, membership_checks.its_place_is_gone),
    Check("given away after the delay", Kind.HISTORY, (DELAYED,), MISSED, membership_checks.given_away_after_the_delay),
    Check("older one is fenced", Kind.PROMISE, (STATIC,), MISSED, membership_checks.older_is_fenced),
    Check("newer one is refused", Kind.PROMISE, (CONSUMER, ZOOKEEPER), MISSED, membership_checks.newer_is_refused),
    Check("taken over at once", Kind.PROMISE, LEAVING, SEEN, membership_checks.taken_over_at_once),
    Check("missed although healthy", Kind.HISTORY, (STATIC,), MISSED, membership_checks.missed_although_healthy),
    Check("offsets carried over", Kind.PROMISE, (EAGER,), SEEN, membership_checks.offsets_carried_over),
    Check("fenced by epoch", Kind.PROMISE, (EAGER,), MISSED, membership_checks.fenced_by_epoch),
    Check("copied twice", Kind.HISTORY, (EAGER,), MISSED, membership_checks.copied_twice_without_transactions),
    Check("balance by strategy", Kind.MODEL, (EAGER,), MISSED, membership_checks.balance_by_strategy),
    Check("sticky moves the fewest", Kind.PROMISE, (EAGER,), SEEN, membership_checks.sticky_moves_the_fewest),
    Check("catches up", Kind.PROMISE, DESIGN_NAMES, MISSED, membership_checks.catches_up),
    Check("no member owns two", Kind.PROMISE, DESIGN_NAMES, SEEN, membership_checks.one_partition_each),
    Check("idle member stops the others", Kind.HISTORY, STOPPING, MISSED, membership_checks.idle_member_stops_all),
    Check("idle member stops nobody", Kind.PROMISE, INCREMENTAL, SEEN, membership_checks.idle_member_stops_nobody),
    Check("new partitions read", Kind.PROMISE, DESIGN_NAMES, MISSED, addition_checks.new_partitions_read),
    Check("noticed at once", Kind.PROMISE, WATCHING, MISSED, addition_checks.noticed_at_once),
    Check("noticed in time", Kind.PROMISE, CLASSIC, MISSED, addition_checks.noticed_in_time),
    Check(
        "noticed at once", Kind.PROMISE, (ZOOKEEPER,), MISSED, addition_checks.noticed_at_once, key="noticed by a watch"
    ),
    Check("noticed by a search", Kind.PROMISE, RECONCILING, MISSED, topic_checks.noticed_by_a_search),
    Check("one rebalance for all", Kind.PROMISE, HEARTBEATS, MISSED, topic_checks.one_rebalance_for_all),
    Check("each rebalances", Kind.HISTORY, (ZOOKEEPER,), MISSED, topic_checks.each_rebalances_for_itself),
    Check("old offsets used", Kind.HISTORY, (ZOOKEEPER, SERVER), MISSED, topic_checks.old_offsets_used),
    Check("begins the new topic anew", Kind.PROMISE, HEARTBEATS, SEEN, topic_checks.begins_anew),
    Check("one for each member", Kind.MODEL, DESIGN_NAMES, MISSED, topic_checks.rebalances_for_each_member),
    Check("unnoticed for minutes", Kind.HISTORY, CLASSIC, MISSED, addition_checks.unnoticed_for_long),
    Check("skips what came meanwhile", Kind.HISTORY, DESIGN_NAMES, MISSED, reset_checks.skips_what_was_not_committed),
    Check("reset only without a commit", Kind.PROMISE, DESIGN_NAMES, SEEN, reset_checks.resets_without_a_commit_only),
    Check("forgets where it was", Kind.HISTORY, COORDINATED, MISSED, reset_checks.forgets_expired_offsets),
    Check(
        "reset only without a commit",
        Kind.PROMISE,
        (ZOOKEEPER,),
        SEEN,
        reset_checks.resets_without_a_commit_only,
        key="offsets never expire",
    ),
    Check("stands still though owned", Kind.HISTORY, DESIGN_NAMES, MISSED, standstill_checks.stands_still_though_owned),
    Check("brokers hand over", Kind.PROMISE, DESIGN_NAMES, SEEN, standstill_checks.restarted_brokers_hand_over),
    Check("slow listener stops all", Kind.HISTORY, LISTENING, MISSED, application_checks.slow_listener_stops_all),
    Check("slow listener stops what moves", Kind.PROMISE, INCREMENTAL, MISSED, application_checks.stops_what_moves),
    Check("pauses dropped", Kind.HISTORY, LISTENING, MISSED, application_checks.pauses_dropped),
    Check("pauses kept", Kind.PROMISE, INCREMENTAL, SEEN, application_checks.pauses_kept),
    Check("changes over and back", Kind.PROMISE, (CONSUMER,), MISSED, changeover_checks.changes_over_and_back),
    Check("stops by protocol", Kind.MODEL, (CONSUMER,), MISSED, changeover_checks.stops_by_protocol),
    Check("offsets kept", Kind.PROMISE, (CONSUMER,), SEEN, changeover_checks.nothing_repeated),
    Check("only subscribers own", Kind.PROMISE, DESIGN_NAMES, SEEN, membership_checks.only_subscribers_own),
    Check("counts", Kind.MODEL, DESIGN_NAMES, MISSED, checks.counts_equal_the_model, with_settings.unfixed),
    Check(
        "counts",
        Kind.MODEL,
        RESTARTS,
        MISSED,
        checks.counts_equal_the_model,
        with_settings.unfixed,
        key="counts of restarts",
    ),
    Check("gives up", Kind.HISTORY, (ZOOKEEPER,), MISSED, outage_checks.gives_up),
    Check("outlasts the session", Kind.PROMISE, (ZOOKEEPER,), SEEN, outage_checks.outlasts_the_session),
    Check("nobody gives up", Kind.PROMISE, COORDINATED, SEEN, outage_checks.nobody_gives_up),
    Check("no rebalance", Kind.PROMISE, DESIGN_NAMES, SEEN, outage_checks.no_rebalance_without_zookeeper),
    Check("goes on delivering", Kind.PROMISE, UNSTOPPED, SEEN, outage_checks.delivers_without_zookeeper),
    Check("stands still", Kind.HISTORY, (SERVER,), MISSED, outage_checks.stands_still_without_zookeeper),
    Check("everybody rebalances", Kind.HISTORY, (ZOOKEEPER,), MISSED, outage_checks.everybody_rebalances),
    Check("expiry noticed", Kind.PROMISE, (SERVER,), MISSED, outage_checks.coordinator_notices_the_expiry),
    Check(
        "owner znodes deleted",
        Kind.HISTORY,
        (ZOOKEEPER,),
        MISSED,
        outage_checks.owner_nodes_deleted,
        with_settings.unchecked,
    ),
    Check("owner znodes kept", Kind.PROMISE, (ZOOKEEPER,), SEEN, outage_checks.owner_nodes_kept, with_settings.checked),
    Check("storm", Kind.HISTORY, DYNAMIC, MISSED, outage_checks.storm),
    Check("no storm", Kind.PROMISE, (STATIC,), SEEN, outage_checks.no_storm),
    Check("outlives the silence", Kind.HISTORY, (ZOOKEEPER, SERVER), MISSED, outage_checks.outlives_the_silence),
    Check(
        "two members deliver",
        Kind.HISTORY,
        (ZOOKEEPER,),
        MISSED,
        outage_checks.two_deliver_past_the_session,
        with_settings.fetching_on,
        key="two members deliver past the session",
    ),
    Check(
        "two members deliver",
        Kind.HISTORY,
        RECONCILING,
        MISSED,
        outage_checks.two_deliver_past_the_session,
        key="two members deliver past the session",
    ),
    Check("replaced", Kind.PROMISE, HEARTBEATS, MISSED, outage_checks.replaces_a_silent_member),
    Check("outlasts the delay", Kind.PROMISE, DESIGN_NAMES, SEEN, outage_checks.outlasts_a_slow_link),
    Check("server's counters", Kind.MODEL, (ZOOKEEPER,), MISSED, checks.counters_equal_the_trace),
)


def has_several_ways(name: str) -> bool:
    """Whether it depends on the scenario how this check is decided."""
    ways = {(design, check.decide) for check in CHECKS if check.name == name for design in check.designs}
    return len(ways) > len({design for design, _ in ways})
