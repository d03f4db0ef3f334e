"""The part of the catalogue that is about what operators do on purpose, and what it costs by the design."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import (
    AddPartitions,
    Form,
    JoinOne,
    KillCoordinator,
    RestartEach,
    Resubscribe,
    SlowOwner,
    Steady,
)
from kernel.designs import DELAYED, EAGER, SERVER, STATIC, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping

_STRATEGY = "partition.assignment.strategy"
#: KIP-429: everybody understands the new one before anybody speaks it alone.
_BEFORE = MappingProxyType({_STRATEGY: "range"})
_BOTH = MappingProxyType({_STRATEGY: "range,cooperative-sticky"})
_AFTER = MappingProxyType({_STRATEGY: "cooperative-sticky"})

#: Long enough that a static member that is away for a second, and slow to start, is not given up meanwhile.
_PATIENT: Mapping[str, str] = MappingProxyType(
    {"session.timeout.ms": "10000", "heartbeat.interval.ms": "1000", "zookeeper.session.timeout.ms": "10000"}
)

CHANGES = (
    Scenario(
        name="rolling-restart",
        symptom="Every deployment stops the whole group: each of my processes is restarted in turn.",
        look_for=(
            "rebalances: two for every process in eager and zookeeper (it goes, it comes), three in cooperative (what "
            "moves is given back first), none in static as long as it is back within the session timeout",
            "partitions stopped at members that were not restarted: static none, cooperative and delayed few, eager "
            "and server every one of them, twice for every process",
            "unowned partition-seconds: static does not save them (nobody else may have its partitions meanwhile); "
            "cooperative may pay more of them than eager, and delayed the whole delay for every process",
        ),
        steps=(Form(), Steady(), RestartEach()),
        defaults=Parameters(members=5, partitions=12),
        settings=_PATIENT,
        budget_s=22,
        references=("KIP-345", "KIP-415", "KIP-429"),
    ),
    Scenario(
        name="slow-member",
        symptom="One consumer took long over one record, and the whole group stood still: its rate was zero.",
        look_for=(
            "seconds without a record: eager and static wait in the rebalance for the slow member, until "
            "max.poll.interval.ms; what they own is stopped meanwhile",
            "cooperative and delayed wait as well, but go on delivering what they keep: only the slow member's "
            "partitions stand still, and the new member has nothing",
            "zookeeper and server wait for nobody: their members rebalance behind the application's back, and what "
            "the slow one has in hand counts as processed",
            "the slow member itself: thrown out of the group, back with another rebalance when it is done",
        ),
        steps=(Form(), Steady(), SlowOwner()),
        settings=MappingProxyType({"max.poll.interval.ms": "5000", "group.server.rebalance.timeout.ms": "5000"}),
        budget_s=16,
        references=("seed 002", "KIP-62", "KIP-429"),
    ),
    Scenario(
        name="scale-out",
        symptom="The load has grown and I add consumers: better one after the other, or all at once?",
        look_for=(
            "every join by itself is a rebalance (cooperative: two); several at once may share one",
            "stopped partitions against moved ones, and the time until the last new member has something to do",
        ),
        steps=(Form(), Steady(), JoinOne(1), JoinOne(2), Form(more=4, change="scale-out")),
        defaults=Parameters(members=4),
        budget_s=14,
        references=("KIP-134", "KIP-429", "KIP-415"),
    ),
    Scenario(
        name="coordinator-failover",
        symptom="The broker that coordinates my group died: must all join again, and are the offsets still there?",
        look_for=(
            "no rebalance: the next broker finds generation, members and assignment in __consumer_offsets and goes on "
            "with them",
            "no committed offset lost: none moves back",
            "how long nobody can commit: about the broker's session, plus loading; members whose own session is "
            "shorter than that give up, and all of them join again (-c session.timeout.ms=3000)",
            "zookeeper: no coordinator to lose, so its offsets are never out of reach; only the partitions that the "
            "lost broker led stand still until another one leads them",
        ),
        steps=(Form(), Steady(), KillCoordinator()),
        # Longer than the brokers' sessions: a coordinator that comes back in time is what is looked at.
        settings=MappingProxyType({"session.timeout.ms": "10000"}),
        brokers_min=2,
        budget_s=12,
        references=("KAFKA-364", "KAFKA-2017"),
    ),
    Scenario(
        name="partition-increase",
        symptom="I added partitions to the topic: when does somebody read them, and what does it cost the others?",
        look_for=(
            "how soon: a watch fires at once in zookeeper and server; elsewhere the leader sees it when its metadata "
            "is due (metadata.max.age.ms, five minutes by default, one second here)",
            "stopped partitions: all of them in zookeeper, server, eager and static, none or few in cooperative and "
            "delayed",
        ),
        steps=(Form(), Steady(), AddPartitions()),
        settings=MappingProxyType({"metadata.max.age.ms": "1000"}),
        budget_s=9,
        references=("KAFKA-3135",),
    ),
    Scenario(
        name="subscription-change",
        symptom="Some of my consumers are to read another topic from now on: can they change over while they run?",
        look_for=(
            "zookeeper: a consumer's streams are made once, so its process has to be restarted, two rebalances for "
            "one change; the other designs subscribe again, one rebalance (cooperative: two)",
            "partitions of the topics that nobody changed: stopped all the same where the whole group rebalances",
        ),
        # Two members for each of two topics; then one of each side goes over to the other.
        steps=(Form(), Steady(), Resubscribe(1, (1,), 1), Resubscribe(3, (0,), 2)),
        defaults=Parameters(members=4, topics=2, partitions=6),
        first_topics=MappingProxyType({1: (0,), 2: (0,), 3: (1,), 4: (1,)}),
        members_min=4,
        topics_min=2,
        budget_s=12,
    ),
    Scenario(
        name="protocol-migration",
        symptom="From eager to cooperative without stopping the group: KIP-429's two rolling bounces.",
        look_for=(
            "in the first bounce members of both kinds are in one group, which goes on with range: eager, everything "
            "stops at every restart",
            "in the second one the group goes over to cooperative-sticky as soon as all list it, and what is kept "
            "goes on",
            "nobody is refused, nothing is lost, and no partition is owned twice while both kinds are in the group",
        ),
        steps=(
            Form(settings=_BEFORE),
            Steady(),
            RestartEach(settings=_BOTH),
            RestartEach(settings=_AFTER),
        ),
        defaults=Parameters(members=3),
        settings=_PATIENT,
        budget_s=30,
        not_applicable=MappingProxyType(
            {
                ZOOKEEPER: "members decide each for itself and vote on nothing: those that decide in another way "
                "claim the same partitions, so all of them have to be stopped first",
                SERVER: "the coordinator decides by a setting of the broker: it is the broker that is restarted",
                EAGER: "it is where the migration begins; the run is that of the design it ends in, cooperative",
                STATIC: "the design is eager with a name for each member; with cooperative-sticky it would be "
                "another one",
                DELAYED: "its protocol stands alone: a member cannot list it beside another one, so there is no "
                "group in which both kinds meet",
            }
        ),
        references=("KIP-429",),
    ),
)
