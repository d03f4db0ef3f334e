"""The scenarios of the catalogue that are planned changes: what they cost in each design."""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.scenarios.plan.membership_vocabulary import RestartEach, Resubscribe, StartAnew
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.presets import CONSUMER_SESSION
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import (
    AddPartitions,
    Form,
    Hold,
    JoinOne,
    KillOwner,
    SlowOwner,
    Steady,
)
from kernel.designs import CLASSIC, CONSUMER, COOPERATIVE, DELAYED, DESIGN_NAMES, EAGER, SERVER, STATIC, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping

_STRATEGY = "partition.assignment.strategy"
#: KIP-429: all members support the new strategy before any member supports it alone.
_BEFORE = MappingProxyType({_STRATEGY: "range"})
_BOTH = MappingProxyType({_STRATEGY: "range,cooperative-sticky"})
_AFTER = MappingProxyType({_STRATEGY: "cooperative-sticky"})

#: Long enough for a static member to be away for a second and start slowly without losing its place in the group.
_PATIENT: Mapping[str, str] = MappingProxyType(
    {
        "session.timeout.ms": "10000",
        "heartbeat.interval.ms": "1000",
        "zookeeper.session.timeout.ms": "10000",
        CONSUMER_SESSION: "10000",
    }
)


def _run_of_consumer(former: str) -> Mapping[str, str]:
    return MappingProxyType(
        {
            design: f"it is a run of consumer, in which members of {former} change over and back"
            for design in DESIGN_NAMES
            if design != CONSUMER
        }
    )


_CHANGEOVER = Scenario(
    name="group-protocol-migration",
    symptom="I set group.protocol=consumer and restart my consumers one by one: what happens on the way, and back?",
    look_for=(
        "the first member of the new protocol makes it a consumer group; the classic members stay, and the "
        "coordinator assigns for them as well. When the last one goes, it is a classic group again",
        "generations and epochs share one counter, which goes on; each restart raises it by two",
        "partitions stopped on the others: a classic member with range stops all it has at every epoch, one of the "
        "new protocol only what it gives up. So each restart is cheaper than the one before on the way there, and "
        "dearer on the way back",
        "no record is lost, and none is delivered again that was committed: offsets belong to the group, whatever "
        "its protocol",
    ),
    checks=(
        "never owned by two members under a coordinator",
        "changes over and back",
        "stops by protocol",
        "offsets kept",
    ),
    counts_predicted=False,
    steps=(
        Form(design=EAGER),
        Steady(),
        RestartEach(design=CONSUMER),
        Steady(),
        RestartEach(design=EAGER),
        Steady(),
    ),
    defaults=Parameters(members=3),
    settings=MappingProxyType({"session.timeout.ms": "10000", CONSUMER_SESSION: "10000"}),
    budget_s=35,
    members_min=2,
    not_applicable=_run_of_consumer(EAGER),
    references=("KIP-848", "Kafka 4.1 documentation, consumer rebalance protocol, upgrade and downgrade"),
)

CHANGES = (
    Scenario(
        name="rolling-restart",
        symptom="Every deployment stops the whole group: my processes are restarted one after the other.",
        look_for=(
            "rebalances per process: two in eager and zookeeper (it leaves, it returns), three in "
            "cooperative (moving partitions are revoked first), none in static if it returns within its session "
            "timeout; two epochs in consumer",
            "partitions stopped on members that were not restarted: none in static, few in cooperative, delayed and "
            "consumer, all in eager and server, twice per process",
            "unowned partition-seconds: static does not avoid them (no other member may take the partitions); "
            "cooperative may have more than eager, and delayed waits for its delay, for each process",
        ),
        checks=("never owned by two members under a coordinator", "kept partitions never stop", "counts of restarts"),
        steps=(Form(), Steady(), RestartEach()),
        defaults=Parameters(members=5, partitions=12),
        settings=_PATIENT,
        budget_s=22,
        references=("KIP-345", "KIP-415", "KIP-429", "KIP-848"),
    ),
    Scenario(
        name="slow-member",
        symptom="One consumer took long over one record, and the whole group stopped: its rate was zero.",
        look_for=(
            "seconds without a record: in eager and static the rebalance waits for the slow member, up to "
            "max.poll.interval.ms, and all partitions are stopped",
            "cooperative and delayed wait as well, but keep delivering the partitions that do not move: only the "
            "slow member's partitions stop, and the new member has none yet",
            "consumer has no barrier: every other member takes over what it is given at once, and only what the slow "
            "one owns waits for it",
            "zookeeper and server do not wait: members rebalance in the background, and the record that the slow "
            "member is processing counts as processed",
            "the slow member is removed from the group, and rejoins with another rebalance when it is done",
        ),
        checks=("waits for the slow member", "waits for nobody", "delivers while it waits"),
        counts_predicted=False,
        steps=(Form(), Steady(), SlowOwner()),
        settings=MappingProxyType({"max.poll.interval.ms": "5000", "group.server.rebalance.timeout.ms": "5000"}),
        budget_s=16,
        references=("https://lxkaka.wang/kafka-rebalance/ (article 002 in docs/sources.md)", "KIP-62", "KIP-429"),
    ),
    Scenario(
        name="scale-out",
        symptom="The load has grown and I add consumers: one after the other, or all at once?",
        look_for=(
            "each single join is a rebalance (two in cooperative); several at once may share one, except in consumer, "
            "where each is an epoch, but members take the last one over without the others between",
            "stopped and moved partitions, and the time until the last new member owns a partition",
        ),
        checks=("never owned by two members under a coordinator", "kept partitions never stop"),
        steps=(Form(), Steady(), JoinOne(1), JoinOne(2), Form(more=4, change="scale-out")),
        defaults=Parameters(members=4),
        budget_s=14,
        references=("KIP-134", "KIP-429", "KIP-415"),
    ),
    Scenario(
        name="partition-increase",
        symptom="I added partitions to the topic: when are they read, and what does it cost the others?",
        look_for=(
            "how soon: in zookeeper and server a watch fires at once; in the others the leader notices when it "
            "refreshes its metadata (metadata.max.age.ms: five minutes by default, one second here). In consumer the "
            "coordinator knows at once, and members learn of it by their next heartbeats",
            "stopped partitions: all in zookeeper, server, eager and static; none or few in cooperative, delayed and "
            "consumer",
        ),
        checks=(
            "never owned by two members under a coordinator",
            "kept partitions never stop",
            "new partitions read",
            "noticed at once",
            "noticed in time",
            "counts",
        ),
        steps=(Form(), Steady(), AddPartitions()),
        settings=MappingProxyType({"metadata.max.age.ms": "1000"}),
        budget_s=9,
        references=("KAFKA-3135",),
    ),
    Scenario(
        name="add-partitions",
        symptom="I doubled a large topic: how long until the new partitions are read, and who stops meanwhile?",
        look_for=(
            "what the time is made of: the topic grows; somebody notices; the others hear of it; JoinGroup, assignor "
            "and SyncGroup; and the first records of the new partitions arrive",
            "in zookeeper and server a watch fires at once, and in consumer the coordinator knows its topics; in the "
            "others the leader's metadata must be older than metadata.max.age.ms (a second here). "
            "unnoticed-partitions has Kafka's default of five minutes",
            "who stops: everybody, for all partitions, in zookeeper, server, eager and static; nobody in cooperative, "
            "delayed and consumer, whose members keep what they have",
            "moved partitions: range divides them afresh, so nearly all move, though each member only needs a few more",
        ),
        checks=(
            "never owned by two members under a coordinator",
            "kept partitions never stop",
            "new partitions read",
            "noticed at once",
            "noticed in time",
            "counts",
        ),
        steps=(Form(), Steady(), AddPartitions(doubling=True), Steady()),
        # So many that the published comparison of KIP-848 can be repeated: 10 consumers get 900 partitions more.
        defaults=Parameters(members=10, partitions=900, rate=300),
        # While 900 logs are made, a broker may be too busy for a session of three seconds.
        settings=MappingProxyType({**_PATIENT, "metadata.max.age.ms": "1000"}),
        budget_s=25,
        references=("KAFKA-3135", "KIP-848"),
    ),
    Scenario(
        name="unnoticed-partitions",
        symptom="I added partitions to the topic, and for minutes nobody reads them.",
        look_for=(
            "how soon anybody notices: the leader when its metadata is metadata.max.age.ms old (Kafka's default here: "
            "five minutes; the group has just formed, so nearly all of it); the rest takes about a second",
            "zookeeper, and the coordinator of consumer, know at once: the same partitions, read within seconds",
            "records wait in the new partitions meanwhile, and none is lost: auto.offset.reset=latest would skip those "
            "that came before",
        ),
        checks=(
            "never owned by two members under a coordinator",
            "kept partitions never stop",
            "new partitions read",
            "noticed at once",
            "noticed in time",
            "unnoticed for minutes",
            "counts",
        ),
        steps=(Form(), Steady(), AddPartitions(doubling=True), Steady()),
        # For five minutes: a record a second for each partition.
        defaults=Parameters(members=3, partitions=30, rate=60, time_limit_s=480),
        settings=MappingProxyType({"metadata.max.age.ms": "300000"}),
        budget_s=310,
        not_applicable=MappingProxyType(
            {
                SERVER: "a watch of the coordinator fires at once, as in zookeeper",
                STATIC: "the leader notices in the same way as in eager",
                DELAYED: "the leader notices in the same way as in cooperative",
            }
        ),
        references=("KAFKA-3135", "KIP-848"),
    ),
    Scenario(
        name="uncommitted-reset",
        symptom="Records vanish in a rebalance, nothing failed, and the group has no lag.",
        look_for=(
            "auto.offset.reset=latest (Kafka's default; largest in 0.8) acts whenever a group has no offset for a "
            "partition, not only the first time it starts: until the first commit each new owner begins at the log's "
            "end",
            "after a crash before the first commit: what came while the victim's session ended is skipped, in every "
            "design",
            "new partitions: what came before the group noticed them is skipped. In zookeeper and server a watch fires "
            "at once; the others skip up to metadata.max.age.ms, or a heartbeat, of records (KIP-842, KIP-1327)",
            "what to do: auto.offset.reset=earliest, and a first commit as soon as a group begins. A group that "
            "wants the end can seek there once",
        ),
        checks=(
            "never owned by two members under a coordinator",
            "skips what came meanwhile",
            "reset only without a commit",
            "new partitions read",
        ),
        # The first automatic commit would come behind the end of the run.
        steps=(Form(), KillOwner(), JoinOne(), AddPartitions(), Hold(3000)),
        settings=MappingProxyType(
            {"auto.offset.reset": "latest", "auto.commit.interval.ms": "60000", "metadata.max.age.ms": "1000"}
        ),
        members_min=2,
        counts_predicted=False,
        budget_s=16,
        references=("KIP-842", "KIP-1327", "KAFKA-20539"),
    ),
    Scenario(
        name="expired-offsets",
        symptom="My group was down over the weekend, and has forgotten where it was.",
        look_for=(
            "a coordinator keeps offsets for offsets.retention.minutes after the last member has left (KIP-211; a week "
            "by default, a minute here), then auto.offset.reset decides: with latest everything that came meanwhile is "
            "skipped, with earliest all that the log still has is delivered again",
            "until Kafka 2.0 the time ran from each commit, for a day by default, also while the group was running: a "
            "partition in which nothing came for a day lost its offset (KAFKA-4682, KAFKA-3806)",
            "zookeeper: znodes do not expire, so the group goes on where it was",
            "what to do: offsets.retention.minutes longer than any pause, and alerts for groups without members",
        ),
        checks=(
            "never owned by two members under a coordinator",
            "forgets where it was",
            "offsets never expire",
        ),
        steps=(Form(), Steady(), StartAnew(change="restart-all", away_ms=65_000), Hold(1000)),
        settings=MappingProxyType(
            {
                "auto.offset.reset": "latest",
                "offsets.retention.minutes": "1",
                "offsets.retention.check.interval.ms": "1000",
            }
        ),
        counts_predicted=False,
        budget_s=80,
        not_applicable=MappingProxyType(
            {
                design: "offsets belong to the group, whatever its protocol: it is as in eager"
                for design in CLASSIC
                if design != EAGER
            }
        ),
        references=("KIP-211", "KAFKA-3806", "KAFKA-4682"),
    ),
    Scenario(
        name="subscription-change",
        symptom="Some of my consumers should read another topic: can they switch while they run?",
        look_for=(
            "zookeeper: a consumer creates its streams once, so its process must be restarted: two rebalances. In the "
            "other designs it subscribes again: one rebalance (two in cooperative). In consumer its next heartbeat "
            "says so",
            "partitions of unaffected topics: stopped as well in designs where the whole group stops",
        ),
        checks=("never owned by two members under a coordinator",),
        counts_predicted=False,
        # Two members read each of two topics; then one of each switches to the other topic.
        steps=(Form(), Steady(), Resubscribe(1, (1,), 1), Resubscribe(3, (0,), 2)),
        defaults=Parameters(members=4, topics=2, partitions=6),
        first_topics=MappingProxyType({1: (0,), 2: (0,), 3: (1,), 4: (1,)}),
        members_min=4,
        topics_min=2,
        budget_s=12,
    ),
    Scenario(
        name="protocol-migration",
        symptom="I migrate from eager to cooperative without stopping the group: KIP-429's two rolling bounces.",
        look_for=(
            "first bounce: members of both kinds share a group, which stays eager (range): everything stops at each "
            "restart",
            "second bounce: the group switches to cooperative-sticky as soon as all members support it, and partitions "
            "that do not move are no longer stopped",
            "no member is refused, no record is lost, and no partition is owned twice while both kinds share the group",
        ),
        checks=("never owned by two members under a coordinator",),
        counts_predicted=False,
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
                ZOOKEEPER: "each member decides by itself, without a vote: members with different strategies would "
                "claim the same partitions, so all of them must be stopped first",
                SERVER: "the strategy is a setting of the broker, so the broker would be restarted",
                EAGER: "the migration begins with this design; run it as the design in which it ends, cooperative",
                STATIC: "it is eager with a name for each member; with cooperative-sticky it would be another design",
                DELAYED: "a member cannot list its protocol with another one, so both kinds cannot share a group",
                CONSUMER: "the coordinator assigns, so members need not agree on a strategy; "
                "group-protocol-migration takes a classic group there and back",
            }
        ),
        references=("KIP-429",),
    ),
    _CHANGEOVER,
    replace(
        _CHANGEOVER,
        name="group-protocol-migration-cooperative",
        variant_of="group-protocol-migration",
        symptom="Like group-protocol-migration, but the members come from cooperative.",
        look_for=(
            "no member stops more than it gives up, whatever its protocol: each restart costs the same",
            "three generations for the last restart: the group is classic again, and cooperative needs two for a join",
            "librdkafka's cooperative-sticky cannot do this on a real 4.1.1, which refuses the first new member: its "
            "leader writes user data into the assignments, as a custom strategy would. Ours writes none",
        ),
        steps=(
            Form(design=COOPERATIVE),
            Steady(),
            RestartEach(design=CONSUMER),
            Steady(),
            RestartEach(design=COOPERATIVE),
            Steady(),
        ),
        not_applicable=_run_of_consumer(COOPERATIVE),
    ),
)
