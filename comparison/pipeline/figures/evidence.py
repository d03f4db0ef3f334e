"""What each check has to find at least: below that its verdict is unknown, never as expected.

It stands beside the functions that decide, which name what is missing in their reasons.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.pipeline.figures import (
    addition_checks,
    changeover_checks,
    checks,
    group_checks,
    membership_checks,
    outage_checks,
    split_checks,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from comparison.results.run import Run

_CHANGEOVER = "every member restarted with the other protocol, and back"
_GROWN = "partitions added to a topic, and a rebalance"
_COMMIT = "a commit that the authority accepted"
_OWNER = "an owner at the authority"
_DUPLICATE = "a process started with another one's group.instance.id"
_BACK = "a member that came back under load"
_JOINED = "a member that joined"
_MET = "a claim that met one of a killed member"
_NO_ZOOKEEPER = "a ZooKeeper server killed under load"
_EXPIRY = "a session that was ended"
_FLAPS = "a member that went and came back, several times"
_RELEASE = "a release of partitions that outlived its session"

#: By the function that decides.
EVIDENCE: Mapping[Callable[[Run], checks.CheckResult], str] = MappingProxyType(
    {
        addition_checks.new_partitions_read: "partitions added to a topic",
        addition_checks.noticed_at_once: _GROWN,
        addition_checks.noticed_in_time: _GROWN,
        addition_checks.unnoticed_for_long: f"{_GROWN}, and a metadata.max.age.ms of a minute or more",
        changeover_checks.changes_over_and_back: _CHANGEOVER,
        changeover_checks.stops_by_protocol: (
            f"{_CHANGEOVER}, with partitions that divide evenly among all members, and one fewer"
        ),
        changeover_checks.nothing_repeated: f"{_CHANGEOVER}, and {_COMMIT}",
        checks.no_record_lost: "a numbered record that was acknowledged and delivered",
        checks.final_offsets_kept: _COMMIT,
        checks.settles: "a change of the group",
        checks.no_offset_moved_back: _COMMIT,
        checks.no_stale_write: f"{_COMMIT}, and an owner there",
        checks.old_commits_refused: "a commit with an old generation or member id",
        checks.old_coordinator_silenced: "another broker that takes the group over during the cut",
        checks.zombie_commits: f"{_COMMIT}, and an owner there",
        checks.zombie_commits_after_a_cut: f"{_COMMIT}, and an owner there",
        checks.no_write_of_an_ended_session: "a session that expired, and a commit of a member after it was replaced",
        checks.two_deliver_after_a_pause: "a delivered record",
        checks.two_deliver_during_a_cut: "a takeover long enough before the heal of the cut",
        checks.counts_equal_the_model: "a change whose counts have a formula",
        checks.counters_equal_the_trace: "the counters of the run's own ZooKeeper servers",
        split_checks.lagging_member_conflicts: "an attempt of the member at the server that lags",
        split_checks.lagging_member_knows_the_group: "a sync of that member that waits for half the lag or more",
        split_checks.nobody_takes_over: "a cut that outlasts a session, and an owner before it",
        group_checks.never_owned_by_two: "a partition that a member claimed",
        group_checks.kept_goes_on: "a partition kept through a rebalance",
        group_checks.delay_honoured: "a member with partitions that left, in more than one rebalance",
        group_checks.generation_kept: "a coordinator killed, and a generation that goes on",
        group_checks.acknowledged_commits_kept: f"a broker that takes the group over, and {_COMMIT}",
        group_checks.waits_for_the_slow_member: "a member that was slowed down, and a rebalance",
        group_checks.goes_on_while_it_waits: "a slow member that is waited for, long enough to deliver",
        group_checks.waits_for_nobody: "a member that was slowed down, and a rebalance meanwhile",
        membership_checks.back_without_a_rebalance: "a member that was missed, and came back",
        membership_checks.spared_by_the_delay: "a member that was missed, and came back",
        membership_checks.early_return_does_not_help: _BACK,
        membership_checks.waits_for_the_dead: "a generation that began after a member was killed",
        membership_checks.its_place_is_gone: _BACK,
        membership_checks.given_away_after_the_delay: _BACK,
        membership_checks.newer_is_refused: _DUPLICATE,
        membership_checks.older_is_fenced: _DUPLICATE,
        membership_checks.taken_over_at_once: "a member with partitions that unsubscribed",
        membership_checks.missed_although_healthy: "a member that unsubscribed",
        membership_checks.offsets_carried_over: "commits to ZooKeeper, and then to Kafka",
        membership_checks.fenced_by_epoch: "records copied by a transactional application",
        membership_checks.copied_twice_without_transactions: "records copied without transactions",
        membership_checks.balance_by_strategy: _OWNER,
        membership_checks.sticky_moves_the_fewest: _OWNER,
        membership_checks.catches_up: "a lag of more than a second's records when members are added",
        membership_checks.one_partition_each: "more members than partitions",
        membership_checks.idle_member_stops_all: _JOINED,
        membership_checks.idle_member_stops_nobody: f"{_JOINED}, and a rebalance",
        membership_checks.only_subscribers_own: _OWNER,
        outage_checks.gives_up: _MET,
        outage_checks.outlasts_the_session: _MET,
        outage_checks.nobody_gives_up: "a member that was killed",
        outage_checks.no_rebalance_without_zookeeper: f"{_NO_ZOOKEEPER}, and deliveries afterwards",
        outage_checks.delivers_without_zookeeper: _NO_ZOOKEEPER,
        outage_checks.stands_still_without_zookeeper: f"{_NO_ZOOKEEPER}, for longer than a session",
        outage_checks.everybody_rebalances: _EXPIRY,
        outage_checks.coordinator_notices_the_expiry: _EXPIRY,
        outage_checks.owner_nodes_deleted: _RELEASE,
        outage_checks.owner_nodes_kept: _RELEASE,
        outage_checks.storm: _FLAPS,
        outage_checks.no_storm: _FLAPS,
        outage_checks.outlives_the_silence: "a cut of one direction that outlasts a session",
        outage_checks.two_deliver_past_the_session: "a cut of one direction that outlasts a session",
        outage_checks.replaces_a_silent_member: "a cut of one direction that outlasts a session",
        outage_checks.outlasts_a_slow_link: "a link whose delay grows to near the session timeout",
    }
)
