"""The scenarios of the catalogue about what applications do in their rebalance listeners, and with their partitions."""

from __future__ import annotations

from types import MappingProxyType

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import Form, Heal, Hold, Inject, JoinOne, Steady
from kernel.designs import ZOOKEEPER

APPLICATIONS = (
    Scenario(
        name="slow-listener",
        symptom="My rebalance callback flushes to a database: every rebalance takes as long as that, and sometimes the "
        "commit in it fails.",
        look_for=(
            "seconds without a record while one listener takes three seconds: the whole group's in server, eager and "
            "static, where everybody has stopped everything and waits; in cooperative, delayed and consumer only what "
            "that member gives up waits",
            "a listener that takes longer than the group waits (max.poll.interval.ms; in server "
            "group.server.rebalance.timeout.ms): the group goes on without its member, and refuses the commit at its "
            "end (CommitFailedException). What it covers is delivered again",
            "Kafka's consumer calls the listener inside poll, so a slow one also stops what its own member keeps, in "
            "every protocol; ours goes on returning that",
            "what to do: commit first and flush later, or keep offsets with the results; max.poll.interval.ms longer "
            "than the slowest callback",
        ),
        checks=("slow listener stops all", "slow listener stops what moves", "old commits refused"),
        counts_predicted=False,
        steps=(
            Form(),
            Steady(),
            Inject("slow-listener", "owner", MappingProxyType({"callback": "revoked", "for_ms": 3000})),
            JoinOne(1),
            Heal(),
            Steady(),
            Inject("late-commit", "owner", MappingProxyType({"for_ms": 8000})),
            JoinOne(2),
        ),
        # With two or three members each gives something up to one more.
        defaults=Parameters(members=2),
        settings=MappingProxyType({"max.poll.interval.ms": "5000", "group.server.rebalance.timeout.ms": "5000"}),
        budget_s=30,
        members_min=2,
        not_applicable=MappingProxyType(
            {
                ZOOKEEPER: "0.8 calls no listener. That of 0.9 to 1.1 (rebalance.listener.in.attempt=true) is called "
                "before the release: until it returns the others' claims conflict with its member's, and they give up "
                "when their tries are used up"
            }
        ),
        references=("KIP-62", "KAFKA-1650", "KAFKA-12459"),
    ),
    Scenario(
        name="paused-partition",
        symptom="I pause partitions while I am busy: their lag grows though they have an owner, and after a rebalance "
        "their records come although I have not resumed them.",
        look_for=(
            "lag that grows in partitions that are owned: their member polls and heartbeats, so that nothing in the "
            "group says why",
            "after the rebalance, in server, eager and static: every pause has been dropped, also of what the same "
            "member got back, and it is handed those records. Kafka's consumers of 0.9 to 4.1 do the same; librdkafka "
            "(2.16) remembers a pause as long as the consumer lives, also of a partition that comes back",
            "cooperative, delayed and consumer: partitions that stay with their member stay paused; one that moves is "
            "not paused with its new owner, nor when it comes back",
            "what to do: pause again in the listener (on_assigned), and alert on the lag of owned partitions",
        ),
        checks=("pauses dropped", "pauses kept"),
        counts_predicted=False,
        steps=(Form(), Steady(), Inject("paused-partitions", "owner"), Hold(3000), JoinOne(), Hold(2000), Heal()),
        defaults=Parameters(members=2),
        budget_s=18,
        not_applicable=MappingProxyType(
            {
                ZOOKEEPER: "0.8's consumer cannot pause: its application stops reading a stream, whose queue fills; a "
                "rebalance changes nothing about that"
            }
        ),
        references=("KAFKA-2350", "https://github.com/Farfetch/kafkaflow/issues/111"),
    ),
)
