"""The scenarios of the catalogue that are about the life of topics, and about subscriptions by pattern."""

from __future__ import annotations

from types import MappingProxyType

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.topic_vocabulary import CreateTopic, SubscribePattern
from comparison.scenarios.plan.vocabulary import Form, Steady
from kernel.designs import SERVER

#: The classic designs look at their topics once a second, instead of every five minutes.
_AGE = MappingProxyType({"metadata.max.age.ms": "1000"})
_BY_NAME = MappingProxyType(
    {SERVER: "its coordinator assigns topics by name; the pattern of 2012's design was never built"}
)

TOPICS = (
    Scenario(
        name="topic-appears",
        symptom="A new topic matched my pattern: when was it read, and how often did my four members rebalance?",
        look_for=(
            "zookeeper: each member watches /brokers/topics, and each of them rebalances for itself, with the "
            "conflicts of a herd",
            "classic designs: whichever member looks first (metadata.max.age.ms: five minutes by default, a second "
            "here) rejoins; the others hear of it with a heartbeat, and look again before they join, so that one "
            "rebalance is enough for all",
            "consumer: the coordinator matches the pattern (SubscriptionPattern), at most once in ten seconds, and "
            "then makes one new target; no member knows of the topic before it has its partitions",
            "stopped partitions: all in zookeeper, eager and static, none in the others",
        ),
        checks=(
            "never owned by two members under a coordinator",
            "kept partitions never stop",
            "new partitions read",
            "noticed by a watch",
            "noticed in time",
            "noticed by a search",
            "one rebalance for all",
            "each rebalances",
        ),
        steps=(Form(), Steady(), CreateTopic("orders-late"), Steady()),
        settings=_AGE,
        pattern="orders.*",
        counts_predicted=False,
        budget_s=20,
        members_min=2,
        not_applicable=_BY_NAME,
        references=("KIP-848", "KAFKA-1139"),
    ),
    Scenario(
        name="pattern-widens",
        symptom="I widened my pattern to match more topics, and rolled it out: what does each member cost?",
        look_for=(
            "a rebalance for each member that has the new pattern (two in zookeeper, where it has to be restarted); a "
            "topic that appears costs the classic designs one for all of them",
            "in between, only the members that have the new pattern may own the new topic: the first one reads all of "
            "it, and moves most of it to each that follows",
            "consumer: a pattern that the coordinator does not know yet waits for its next search, up to ten seconds; "
            "the second member that brings it need not wait",
        ),
        checks=(
            "never owned by two members under a coordinator",
            "new partitions read",
            "one for each member",
        ),
        steps=(Form(), Steady(), SubscribePattern("orders-.*"), Steady()),
        defaults=Parameters(topics=2, partitions=6),
        settings=_AGE,
        pattern="orders-0",
        counts_predicted=False,
        budget_s=30,
        members_min=2,
        topics_min=2,
        not_applicable=_BY_NAME,
        references=("KIP-848",),
    ),
)
