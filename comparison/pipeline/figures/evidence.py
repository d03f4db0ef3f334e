"""What each check has to find at least: below that its verdict is unknown, never as expected.

It stands beside the functions that decide, which name what is missing in their reasons.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.pipeline.figures import addition_checks as a
from comparison.pipeline.figures import changeover_checks as x
from comparison.pipeline.figures import checks as c
from comparison.pipeline.figures import group_checks as g
from comparison.pipeline.figures import membership_checks as m
from comparison.pipeline.figures import outage_checks as o
from comparison.pipeline.figures import split_checks as s

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
EVIDENCE: Mapping[Callable[[Run], c.CheckResult], str] = MappingProxyType(
    {
        a.new_partitions_read: "partitions added to a topic",
        a.noticed_at_once: _GROWN,
        a.noticed_in_time: _GROWN,
        a.unnoticed_for_long: f"{_GROWN}, and a metadata.max.age.ms of a minute or more",
        x.changes_over_and_back: _CHANGEOVER,
        x.stops_by_protocol: f"{_CHANGEOVER}, with partitions that divide evenly among all members, and one fewer",
        x.nothing_repeated: f"{_CHANGEOVER}, and {_COMMIT}",
        c.no_record_lost: "a numbered record that was acknowledged and delivered",
        c.final_offsets_kept: _COMMIT,
        c.settles: "a change of the group",
        c.no_offset_moved_back: _COMMIT,
        c.no_stale_write: f"{_COMMIT}, and an owner there",
        c.old_commits_refused: "a commit with an old generation or member id",
        c.old_coordinator_silenced: "another broker that takes the group over during the cut",
        c.zombie_commits: f"{_COMMIT}, and an owner there",
        c.zombie_commits_after_a_cut: f"{_COMMIT}, and an owner there",
        c.no_write_of_an_ended_session: "a session that expired, and a commit of a member after it was replaced",
        c.two_deliver_after_a_pause: "a delivered record",
        c.two_deliver_during_a_cut: "a takeover long enough before the heal of the cut",
        c.counts_equal_the_model: "a change whose counts have a formula",
        c.counters_equal_the_trace: "the counters of the run's own ZooKeeper servers",
        s.lagging_member_conflicts: "an attempt of the member at the server that lags",
        s.lagging_member_knows_the_group: "a sync of that member that waits for half the lag or more",
        s.nobody_takes_over: "a cut that outlasts a session, and an owner before it",
        g.never_owned_by_two: "a partition that a member claimed",
        g.kept_goes_on: "a partition kept through a rebalance",
        g.delay_honoured: "a member with partitions that left, in more than one rebalance",
        g.generation_kept: "a coordinator killed, and a generation that goes on",
        g.acknowledged_commits_kept: f"a broker that takes the group over, and {_COMMIT}",
        g.waits_for_the_slow_member: "a member that was slowed down, and a rebalance",
        g.goes_on_while_it_waits: "a slow member that is waited for, long enough to deliver",
        g.waits_for_nobody: "a member that was slowed down, and a rebalance meanwhile",
        m.back_without_a_rebalance: "a member that was missed, and came back",
        m.spared_by_the_delay: "a member that was missed, and came back",
        m.early_return_does_not_help: _BACK,
        m.waits_for_the_dead: "a generation that began after a member was killed",
        m.its_place_is_gone: _BACK,
        m.given_away_after_the_delay: _BACK,
        m.newer_is_refused: _DUPLICATE,
        m.older_is_fenced: _DUPLICATE,
        m.taken_over_at_once: "a member with partitions that unsubscribed",
        m.missed_although_healthy: "a member that unsubscribed",
        m.offsets_carried_over: "commits to ZooKeeper, and then to Kafka",
        m.fenced_by_epoch: "records copied by a transactional application",
        m.copied_twice_without_transactions: "records copied without transactions",
        m.balance_by_strategy: _OWNER,
        m.sticky_moves_the_fewest: _OWNER,
        m.catches_up: "a lag of more than a second's records when members are added",
        m.one_partition_each: "more members than partitions",
        m.idle_member_stops_all: _JOINED,
        m.idle_member_stops_nobody: f"{_JOINED}, and a rebalance",
        m.only_subscribers_own: _OWNER,
        o.gives_up: _MET,
        o.outlasts_the_session: _MET,
        o.nobody_gives_up: "a member that was killed",
        o.no_rebalance_without_zookeeper: f"{_NO_ZOOKEEPER}, and deliveries afterwards",
        o.delivers_without_zookeeper: _NO_ZOOKEEPER,
        o.stands_still_without_zookeeper: f"{_NO_ZOOKEEPER}, for longer than a session",
        o.everybody_rebalances: _EXPIRY,
        o.coordinator_notices_the_expiry: _EXPIRY,
        o.owner_nodes_deleted: _RELEASE,
        o.owner_nodes_kept: _RELEASE,
        o.storm: _FLAPS,
        o.no_storm: _FLAPS,
        o.outlives_the_silence: "a cut of one direction that outlasts a session",
        o.two_deliver_past_the_session: "a cut of one direction that outlasts a session",
        o.replaces_a_silent_member: "a cut of one direction that outlasts a session",
        o.outlasts_a_slow_link: "a link whose delay grows to near the session timeout",
    }
)
