"""The scenarios about who is a member, and what each gets: members that come back, and groups of uneven members."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.scenarios.plan.membership_vocabulary import (
    CopyWithZombie,
    CrashAndReturn,
    DuplicateInstance,
    JoinAndLeave,
    RestartEach,
    SlowApplication,
    StartAnew,
)
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.presets import CONSUMER_HEARTBEAT, CONSUMER_SESSION
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import Form, Heal, Hold, Inject, JoinOne, LeaveOne, Settle, Steady
from kernel.designs import CLASSIC, CONSUMER, COOPERATIVE, DELAYED, EAGER, SERVER, STATIC, ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comparison.scenarios.plan.step import Step

_STRATEGY = "partition.assignment.strategy"
#: Long enough for a member to come back while it is still missed, which takes a moment on a busy machine.
_MISSED: Mapping[str, str] = MappingProxyType(
    {
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "1000",
        "zookeeper.session.timeout.ms": "6000",
        CONSUMER_SESSION: "6000",
        "scheduled.rebalance.max.delay.ms": "4000",
        "rebalance.max.retries": "8",
    }
)
#: Polls of a quarter of a second, so that a member that learns of a rebalance soon rejoins; and heartbeats in Kafka's
#: proportion to the session, so that members learn of it at different times.
_UNDER_LAG: Mapping[str, str] = MappingProxyType(
    {
        "max.poll.records": "30",
        "session.timeout.ms": "6000",
        "heartbeat.interval.ms": "2000",
        "zookeeper.session.timeout.ms": "6000",
        CONSUMER_SESSION: "6000",
        CONSUMER_HEARTBEAT: "2000",
    }
)


def strategies_steps(names: tuple[str, ...]) -> tuple[Step, ...]:
    """The same join and the same leave with each strategy, in a group of its own."""
    steps: list[Step] = [Form(settings={_STRATEGY: names[0]}), Steady(), JoinAndLeave(names[0])]
    for name in names[1:]:
        steps += [StartAnew({_STRATEGY: name}), JoinAndLeave(name)]
    return tuple(steps)


#: 0.8 may read an offset before its owner has committed: a race of its own, by which the migration is not judged.
_CLAIM_FIRST: Mapping[str, str] = MappingProxyType({"fix.claim.before.offsets": "true"})
#: How the 0.8.2 consumer keeps its offsets in both places.
_DUAL_COMMIT: Mapping[str, str] = MappingProxyType(
    {**_CLAIM_FIRST, "offsets.storage": "kafka", "dual.commit.enabled": "true"}
)
_LIKE_EAGER = tuple(design for design in (*CLASSIC, CONSUMER) if design != EAGER)
MIGRATION = "migration"

COMPARED_STRATEGIES = ("range", "roundrobin", "sticky", "cooperative-sticky")

MEMBERSHIP = (
    Scenario(
        name="crash-and-return",
        symptom="A consumer crashed and was restarted at once: must everybody else stop for that?",
        look_for=(
            "static: it is back within its session timeout, as the same member: no rebalance, nobody else notices",
            "delayed: it is back after its session but within the delay: nobody else stops, and it gets its "
            "partitions back when the delay ends",
            "eager and cooperative: it comes back as a new member while the group still waits for the old one; the "
            "rebalance lasts until the old one's session ends. In eager nobody delivers meanwhile",
            "consumer: it comes back as a new member and takes a few partitions over from others; those of the dead "
            "one wait for the end of its session, and nobody else does",
            "zookeeper: the old one's claims stand until its session ends; attempts fail on them, and its partitions "
            "have no consumer until then",
        ),
        checks=(
            "back without a rebalance",
            "spared by the delay",
            "early return does not help",
            "waits for the dead member",
        ),
        steps=(Form(), Steady(), CrashAndReturn()),
        settings=_MISSED,
        members_min=2,
        budget_s=14,
        references=("KIP-345", "KIP-415", "KAFKA-7728"),
    ),
    Scenario(
        name="crash-and-return-late",
        symptom="A consumer crashed and came back too late: what does it cost that it had a place before?",
        look_for=(
            "static: its session has ended, so its name is worth nothing: one rebalance when it is removed, another "
            "one when it is back",
            "delayed: its partitions were given away after the delay, and some move again when it is back",
            "the other designs: as a crash and then a join",
        ),
        checks=("its place is gone", "given away after the delay"),
        steps=(Form(), Steady(), CrashAndReturn(over_ms=2000)),
        settings=_MISSED,
        members_min=2,
        budget_s=18,
        references=("KIP-345", "KIP-415"),
    ),
    Scenario(
        name="duplicate-instance-id",
        symptom="Two of my processes have the same group.instance.id: one of them ends with FENCED_INSTANCE_ID or "
        "UNRELEASED_INSTANCE_ID.",
        look_for=(
            "static: the newer one takes the place and the partitions of the older one, without a rebalance",
            "static: the older one learns of it from its next request (a heartbeat, a commit); its application gets an "
            "error that no retry helps against. Until then both deliver, and none of the older one's commits is "
            "accepted",
            "consumer: the other way round. The newer one is refused (UNRELEASED_INSTANCE_ID) for as long as the older "
            "one sends heartbeats; the older one notices nothing",
            "zookeeper, with the same consumer.id: 0.8 waits until the older one's id znode is gone, for ever if need "
            "be (KAFKA-1387). Since 1.1, and here (registration.conflict=fail), the newer one ends with an error",
            "it is over only when its application ends: a classic consumer of Kafka that polls on after "
            "FENCED_INSTANCE_ID joins again, and fences the other one, in turns (kafka-clients 3.9.1 and 4.1.1)",
        ),
        checks=("older one is fenced", "newer one is refused"),
        steps=(Form(), Steady(), DuplicateInstance()),
        settings=MappingProxyType({"registration.conflict": "fail"}),
        members_min=2,
        budget_s=9,
        not_applicable=MappingProxyType(
            {
                SERVER: "it has no group.instance.id",
                EAGER: "with a group.instance.id it is the design static",
                COOPERATIVE: "its members have no group.instance.id here; with one they are fenced as in static",
                DELAYED: "its members have no group.instance.id here; with one they are fenced as in static",
            }
        ),
        named_members=True,
        references=("KIP-345", "KAFKA-8225", "KIP-848"),
    ),
    Scenario(
        name="unsubscribe",
        symptom="One of my consumers called unsubscribe() and lives on: who reads its partitions, and how soon?",
        look_for=(
            "the others take over at once, because the member leaves the group; delayed waits for its delay",
            "static: a member with a name does not leave when it unsubscribes, so the others wait for its session "
            "timeout, although its process is healthy",
            "zookeeper: a consumer keeps its subscription for life, so its application shuts it down",
            "what was delivered and not committed is delivered again where unsubscribing commits nothing: in eager and "
            "its descendants. A consumer member commits first",
        ),
        checks=(
            "never owned by two members under a coordinator",
            "kept partitions never stop",
            "taken over at once",
            "missed although healthy",
        ),
        steps=(Form(), Steady(), Inject("unsubscribe", "owner"), Settle(), Hold(1000), Heal("unsubscribe")),
        members_min=2,
        budget_s=14,
        references=("KIP-345", "KAFKA-20985", "confluentinc/librdkafka PR 3375"),
    ),
    Scenario(
        name="strategies",
        symptom="Which partition.assignment.strategy should I use: range, roundrobin, sticky or cooperative-sticky?",
        look_for=(
            "most partitions less fewest, after each change: range divides each topic by itself, so the same members "
            "get one more of every topic; the others are within one",
            "partitions moved, and the fewest that had to move: range and roundrobin start from the members' order; "
            "sticky and cooperative-sticky move no more than they have to",
            "partitions stopped: all with range, roundrobin and sticky; those that move with cooperative-sticky",
        ),
        checks=("never owned by two members under a coordinator", "balance by strategy", "sticky moves the fewest"),
        steps=strategies_steps(COMPARED_STRATEGIES),
        defaults=Parameters(topics=3, partitions=6),
        members_min=2,
        budget_s=24,
        not_applicable=MappingProxyType(
            {
                ZOOKEEPER: "it has range and roundrobin only; run mixed-subscriptions, or join with -c "
                "partition.assignment.strategy=roundrobin",
                SERVER: "the strategy is a setting of the broker, so the broker would be restarted",
                STATIC: "it has the strategies of eager, and a leave would wait for the session",
                COOPERATIVE: "its strategy defines the design; the run of eager ends with it",
                DELAYED: "its strategy defines the design",
                CONSUMER: "its members have no strategy: the coordinator assigns, with uniform or range; run join "
                "and leave with and without -c group.remote.assignor=range",
            }
        ),
        references=("KIP-54", "KIP-429", "KAFKA-2196"),
    ),
    Scenario(
        name="offset-migration",
        symptom="I replace the ZooKeeper consumers of 0.8 by new ones: do they go on where the old ones stopped?",
        look_for=(
            "first the old members are restarted one after the other with offsets.storage=kafka and "
            "dual.commit.enabled=true: they read the larger of both offsets, and commit to Kafka and to ZooKeeper",
            "then all of them stop, and as many members of the new protocol start in the same group. To the "
            "coordinator the old group was one without members: its commits have no generation",
            "no record is lost, and none is delivered again that was committed. Without dual commits the new members "
            "would find no offsets, and begin as auto.offset.reset says",
        ),
        checks=("offsets carried over",),
        counts_predicted=False,
        steps=(
            Form(design=ZOOKEEPER, settings=_CLAIM_FIRST),
            Steady(),
            RestartEach(settings=_DUAL_COMMIT),
            Steady(),
            StartAnew(change=MIGRATION),
            Steady(),
        ),
        defaults=Parameters(members=3),
        budget_s=24,
        not_applicable=MappingProxyType(
            {
                ZOOKEEPER: "the migration begins with this design; run it as the design in which it ends",
                SERVER: "its members take their offsets from the coordinator as well; the migration is that of eager",
                **dict.fromkeys(_LIKE_EAGER, "the offsets are taken over in the same way as in eager"),
            }
        ),
        references=("KAFKA-1012", "Kafka 0.8.2 documentation, migrating offsets from ZooKeeper to Kafka"),
    ),
    Scenario(
        name="read-process-write",
        symptom="My application copies records to another topic; after a long pause some of them are there twice.",
        look_for=(
            "without transactions: the application that wakes up writes on, and its records are stored beside those of "
            "the one that replaced it. The group fences its commit of the offset (UNKNOWN_MEMBER_ID), not its write",
            "with a transactional.id: its successor has raised the epoch, so its write is refused "
            "(INVALID_PRODUCER_EPOCH), and the offset and the commit of its transaction as well (PRODUCER_FENCED)",
            "a read_committed reader gets each record once; what the first one wrote before its pause is aborted",
        ),
        checks=("fenced by epoch", "copied twice"),
        steps=(Form(), Steady(), CopyWithZombie(transactions=False), CopyWithZombie()),
        defaults=Parameters(members=2),
        budget_s=8,
        not_applicable=MappingProxyType(
            {
                ZOOKEEPER: "its group is not involved; brokers fence producers in the same way: see eager",
                SERVER: "the brokers fence producers, whatever the design: see eager",
                **dict.fromkeys(_LIKE_EAGER, "the brokers fence producers, whatever the design: see eager"),
            }
        ),
        references=("KIP-98", "KIP-447", "KIP-890"),
    ),
    Scenario(
        name="scale-out-under-lag",
        symptom="My consumers lag behind, so I added more, and at first the lag rose.",
        look_for=(
            "the lag chart: it rises while two slow applications get more than they can process, rises faster while "
            "the group rebalances, and falls when six more have begun",
            "records not delivered because of the rebalance, and the time until the group has delivered as many as "
            "without it: the break-even",
            "in eager and static everything stops until the slower of the two has come to the end of its records; "
            "cooperative and delayed go on delivering what they keep, but what moves has no owner between their two "
            "rounds; in consumer, between two heartbeats",
        ),
        checks=("never owned by two members under a coordinator", "catches up"),
        steps=(
            Form(),
            Steady(),
            SlowApplication(per_record_ms=12),
            Hold(4000),
            Form(more=6, change="scale-out"),
            Hold(6000),
            SlowApplication(per_record_ms=0),
        ),
        defaults=Parameters(members=2, partitions=16, rate=400),
        settings=_UNDER_LAG,
        budget_s=20,
        references=("KIP-134", "KIP-429"),
    ),
    Scenario(
        name="idle-members",
        symptom="I have more consumers than partitions: what do the idle ones do, and what do they cost?",
        look_for=(
            "no member owns more than one partition; the others own none, and take over when an owner leaves",
            "a member that joins and gets nothing still costs a rebalance: in zookeeper, server, eager and static "
            "every partition stops for it and is given back; in cooperative, delayed and consumer none does",
            "static: an idle member takes over only after the session timeout of the one that left; delayed: after "
            "its delay",
        ),
        checks=(
            "never owned by two members under a coordinator",
            "kept partitions never stop",
            "no member owns two",
            "idle member stops the others",
            "idle member stops nobody",
            "counts",
        ),
        steps=(Form(), Steady(), JoinOne(), LeaveOne()),
        defaults=Parameters(members=6, partitions=4),
        members_min=2,
        budget_s=14,
        references=("KIP-54", "KIP-415"),
    ),
    Scenario(
        name="mixed-subscriptions",
        symptom="My consumers subscribe to different topics in one group, and one of them does most of the work.",
        look_for=(
            "no member owns a partition of a topic that it has not subscribed to",
            "the most partitions of a member less the fewest: range and roundrobin go by the members' order and know "
            "no balance across topics; cooperative-sticky and uniform even it out as far as subscriptions allow",
            "the whole group stops when a member joins, also for topics that the member does not read, except in "
            "cooperative, delayed and consumer",
        ),
        checks=("never owned by two members under a coordinator", "kept partitions never stop", "only subscribers own"),
        counts_predicted=False,
        # Nested subscriptions, as in the example of Kafka's RoundRobinAssignor. One member that joins reads everything.
        steps=(Form(), Steady(), JoinOne(), LeaveOne()),
        defaults=Parameters(members=4, topics=3, partitions=4),
        first_topics=MappingProxyType({1: (0,), 2: (0, 1), 3: (1, 2), 4: (0, 1, 2)}),
        members_min=4,
        topics_min=3,
        budget_s=14,
        references=("KIP-54", "KAFKA-2196", "KAFKA-3297"),
    ),
)
