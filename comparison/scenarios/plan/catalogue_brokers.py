"""The scenarios in which brokers fail, or are restarted, and the group's members stay who they are."""

from __future__ import annotations

from types import MappingProxyType

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.presets import CONSUMER_SESSION
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import Form, Heal, Hold, Inject, KillCoordinator, Steady

#: Longer than the brokers' sessions, so that another coordinator is there before members give up.
_PATIENT = MappingProxyType({"session.timeout.ms": "10000", CONSUMER_SESSION: "10000"})

BROKERS = (
    Scenario(
        name="coordinator-failover",
        symptom="The broker that coordinates my group died: must all members rejoin, and are the offsets still there?",
        look_for=(
            "no rebalance: the next coordinator reads generation, members and assignment from __consumer_offsets; in "
            "consumer the epochs, the target and what each member has of it",
            "no committed offset is lost, and none moves back",
            "how long members cannot commit: about the broker's session timeout, plus loading. Members with a shorter "
            "session timeout give up, and all of them rejoin (-c session.timeout.ms=3000)",
            "zookeeper: there is no coordinator, so offsets are always available; only the partitions that the killed "
            "broker led stop, until another broker leads them",
        ),
        checks=("generation kept", "no commit lost"),
        steps=(Form(), Steady(), KillCoordinator()),
        settings=_PATIENT,
        brokers_min=2,
        budget_s=12,
        references=("KAFKA-364", "KAFKA-2017"),
    ),
    Scenario(
        name="brokers-rolling",
        symptom="My brokers were upgraded one after the other: no rebalance, no lag alarm, and yet nothing came.",
        look_for=(
            "a broker that shuts down in order hands its partitions over (controlled shutdown, KAFKA-340): members "
            "find the new leader after a refused fetch and retry.backoff.ms, in zookeeper refresh.leader.backoff.ms",
            "one that is killed, say by a supervisor that does not wait: until its session with ZooKeeper ends nobody "
            "leads what it led, though each partition has its owner: no rebalance, no unowned time, and no lag of "
            "committed offsets, for producers wait as well",
            "what to do: wait until a broker has stopped, and until UnderReplicatedPartitions is 0, before the next "
            "one; replicas on other brokers; and watch how old the last record is, not the lag alone",
        ),
        checks=("never owned by two members under a coordinator", "stands still though owned", "brokers hand over"),
        steps=(
            Form(),
            Steady(),
            *(
                step
                for broker in ("broker-1", "broker-2", "broker-3")
                for step in (Inject("restart", broker), Hold(2000))
            ),
            Inject("kill", "broker-1"),
            Hold(5000),
            Heal(),
        ),
        settings=_PATIENT,
        defaults=Parameters(brokers=3),
        brokers_min=3,
        counts_predicted=False,
        budget_s=25,
        references=("KAFKA-340",),
    ),
)
