"""The scenarios of the catalogue that are about the life of topics, and about subscriptions by pattern."""

from __future__ import annotations

from types import MappingProxyType

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.topic_vocabulary import CreateTopic, RecreateTopic, SubscribePattern
from comparison.scenarios.plan.vocabulary import Form, Hold, Steady
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
    Scenario(
        name="topic-recreated",
        symptom="I deleted a topic and created it again: where does my running group go on?",
        look_for=(
            "zookeeper and server: committed offsets outlive their topic, so the group begins the new one where it was "
            "in the old one. While the new log is shorter that is out of range, and auto.offset.reset decides: with "
            "earliest all is read, with latest what came first is skipped. Once the log is longer, the group begins in "
            "the middle, and nothing says so",
            "the others: the coordinator deletes the offsets with their topic, and the new one is read from where "
            "auto.offset.reset says; commits that come while there is no topic are refused. But offsets go by names: "
            "if the new topic is there before a classic group looks at its metadata (metadata.max.age.ms: five minutes "
            "by default, a second here, and the topic is away for three), members commit their place in the old one",
            "who notices: a watch tells zookeeper and server of both changes at once. The leader of a classic group "
            "sees them in its metadata, a coordinator of KIP-848 in its image: two rebalances, one without partitions",
            "what to do: stop the group, and delete its offsets of the topic before it starts again (kafka-consumer-"
            "groups --delete-offsets; in zookeeper the znodes below /consumers/GROUP/offsets), or use another name. "
            "auto.create.topics.enable=false, as here: otherwise the members' own requests for metadata bring the "
            "topic back, with num.partitions partitions, before anybody creates it",
        ),
        checks=(
            "never owned by two members under a coordinator",
            "old offsets used",
            "begins the new topic anew",
        ),
        # The old log has to be longer than the new one is when the group begins it.
        steps=(Form(), Steady(), Hold(2000), RecreateTopic(), Steady()),
        settings=MappingProxyType({**_AGE, "auto.create.topics.enable": "false"}),
        counts_predicted=False,
        budget_s=20,
        members_min=2,
        references=("KIP-516", "KIP-848"),
    ),
)
