"""The scenarios in which ZooKeeper, a session, or the way to the authority is what fails.

Where the designs differ, it is by who keeps a member's session: ZooKeeper (zookeeper and server), or the group's
coordinator by heartbeats (the others).
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import Form, Heal, Hold, Inject, Settle, Steady
from kernel.designs import COORDINATED, DESIGNS

if TYPE_CHECKING:
    from collections.abc import Mapping

#: Far less than a session: a member gives up long before a dead one's owner znodes are gone.
_HASTY = MappingProxyType({"rebalance.max.retries": "4", "rebalance.backoff.ms": "200"})
#: So many tries that no member gives up while another one is slow; most partitions move when a member joins.
_STUBBORN = MappingProxyType(
    {
        "rebalance.max.retries": "40",
        "rebalance.backoff.ms": "200",
        "partition.assignment.strategy": "roundrobin",
    }
)
#: Java's client pauses for up to two seconds before it connects again: a session of three could end meanwhile.
_UNHURRIED = MappingProxyType({"zookeeper.session.timeout.ms": "6000"})
_NO_ZOOKEEPER_SESSION: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        (name for name, design in DESIGNS.items() if not design.zookeeper_sessions),
        "its members have no ZooKeeper sessions; how their sessions with the coordinator end is in crash and pause",
    )
)
_NO_OWNER_ZNODES: Mapping[str, str] = MappingProxyType(
    dict.fromkeys(
        COORDINATED,
        "its members write no owner znodes: one coordinator stores who owns what, and fences by generation",
    )
)

OUTAGES = (
    Scenario(
        name="rebalance-failed",
        symptom="My restarted consumer 'can't rebalance after 4 retries', and part of the topic is not read.",
        look_for=(
            "zookeeper: the dead member's owner znodes stay until its session ends. A member that has to claim one "
            "of them fails every try, gives up and owns nothing, and the others leave its share to it",
            "zookeeper: a member that gives up at its start gets ConsumerRebalanceFailedException; one that gives up "
            "later only logs it. The end of the dead session is the next change, which cures both",
            "zookeeper with -c rebalance.backoff.ms=2000: the tries outlast the session, and nobody gives up. The rule "
            "was retries x backoff > session timeout; the last try begins one backoff earlier. docs/sweeps.md has the "
            "grid of both",
            "eager, cooperative and delayed: nobody tries again, the group waits for the dead member's session once; "
            "static: the new process takes the dead one's place, and nothing is rebalanced; consumer: only the dead "
            "member's partitions wait",
        ),
        checks=("gives up", "outlasts the session", "nobody gives up"),
        # With 20 partitions each of 4 members loses one to another member when there are 5, so some claim conflicts.
        steps=(Form(), Steady(), Inject("kill", "owner"), Heal()),
        defaults=Parameters(partitions=20),
        settings=_HASTY,
        budget_s=14,
        members_min=2,
        references=("KAFKA-4228", "LivePersonInc/kafka-java-bridge issue 5", "allegro/hermes PR 450"),
    ),
    Scenario(
        name="zk-leader-kill",
        symptom="A ZooKeeper server died, the leader. Does my consumer group rebalance, or stop?",
        look_for=(
            "no rebalance in any design: clients lose their connections for the election (about half a second), but "
            "the new leader starts every session's timer again, so no session ends",
            "zookeeper: deliveries go on, offsets cannot be written during the election and are written after it",
            "server: members go on as well, unless the election takes more than a third of their session timeout",
            "the other designs: members notice nothing; only brokers reconnect",
        ),
        checks=("no rebalance", "goes on delivering"),
        steps=(Form(), Steady(), Inject("kill", "leader"), Hold(4000), Heal()),
        defaults=Parameters(time_limit_s=120),
        settings=_UNHURRIED,
        budget_s=20,
        zookeeper_servers=3,
        members_min=2,
        brokers_min=2,
        references=("ZOOKEEPER administrator's guide",),
    ),
    Scenario(
        name="quorum-loss",
        symptom="Two of three ZooKeeper servers are down: what still works, and what happens when they come back?",
        look_for=(
            "no rebalance, although the outage is longer than the session timeout: without a leader no session ends, "
            "and the next leader starts all timers again",
            "zookeeper: members go on delivering what they own, blindly; commits to ZooKeeper wait, and a member that "
            "joins, leaves or dies is not noticed until the quorum is back",
            "server: a member that has lost ZooKeeper for a third of its session timeout stops delivering: the whole "
            "group stands still until the quorum is back, and nobody takes over",
            "the other designs: heartbeats and commits go to the coordinating broker, which needs ZooKeeper for none "
            "of them; a new coordinator could not be elected meanwhile",
        ),
        checks=("no rebalance", "goes on delivering", "stands still"),
        steps=(Form(), Steady(), Inject("quorum-loss", "ensemble"), Hold(8000), Heal()),  # longer than a session
        defaults=Parameters(time_limit_s=120),
        settings=_UNHURRIED,
        budget_s=25,
        zookeeper_servers=3,
        members_min=2,
        brokers_min=2,
        references=("ZOOKEEPER administrator's guide", "KIP-500"),
    ),
    Scenario(
        name="session-expiry",
        symptom="One consumer's ZooKeeper session expired, and all consumers rebalanced, some of them twice.",
        look_for=(
            "zookeeper: everybody stops twice (the member is gone, the member is back), unless both notifications "
            "come together; the expired member rebalances three times: for its new session, and for each listener",
            "zookeeper: until its new session's first rebalance, the expired member goes on delivering what others "
            "own by then",
            "server: the coordinator sees the id go and come back, and commands two rebalances at most",
        ),
        checks=("everybody rebalances", "expiry noticed"),
        # The hold outlasts the pause of up to two seconds before a member connects again.
        steps=(Form(), Steady(), Inject("expire", "owner"), Hold(2600), Settle()),
        budget_s=12,
        members_min=2,
        not_applicable=_NO_ZOOKEEPER_SESSION,
        references=("KAFKA-1387", "KAFKA-992"),
    ),
    Scenario(
        name="session-expiry-all",
        symptom="After a ZooKeeper hiccup the sessions of all consumers had expired at once.",
        look_for=(
            "zookeeper: a mass start with members that still deliver: every id and owner znode is gone at once, all "
            "register again, and some claims meet others', as in mass-start; how many depends on who is first",
            "zookeeper: offsets may be written by a member in its new session while another one owns the partition",
            "server: one coordinator sees them go and come back: a rebalance for each at most, and fewer if it sees "
            "several at once",
        ),
        checks=("everybody rebalances", "expiry noticed"),
        steps=(Form(), Steady(), Inject("expire", "members"), Hold(2600), Settle()),  # as in session-expiry
        budget_s=12,
        members_min=2,
        not_applicable=_NO_ZOOKEEPER_SESSION,
        references=("KAFKA-1387", "SOHU-Co/kafka-node issue 341"),
    ),
    Scenario(
        name="ghost-owner",
        symptom="ZooKeeper says that nobody owns my partition, yet a consumer reads it, and the next one may claim it.",
        look_for=(
            "zookeeper: the session of a member with a slow link ends in the middle of a release; the rest of its "
            "deletes is sent again in the new session, by path, without a check, and hits znodes that others created",
            "zookeeper: a claim that meets a conflict is rolled back, as in Kafka 0.8.2; clients that forgot to "
            "(SOHU-Co/kafka-node PR 981) owned partitions in ZooKeeper that they never read. Not in this run: a claim "
            "that fails halfway in another way is not rolled back, as in 0.8.2 ('rollback gap' in docs/weaknesses.md), "
            "which test_claim_that_fails_without_a_conflict_leaks_nodes shows",
            "zookeeper: those members believe that they still own the partitions and go on; nothing creates the "
            "znodes again before the next change of the group: 'partitions without an owner at the end'",
            "zookeeper with -c fix.checked.release=true: the repeated deletes are refused, every partition has its "
            "owner znode in the end. The price: a release reads each node first",
        ),
        checks=("owner znodes deleted", "owner znodes kept"),
        # One more member joins, so m1 has to release all it owns over a slow link, one delete after the other, and its
        # session ends about in the middle of it. Most of what m1 owned among 3 members belongs to others among 4, so
        # the rest of the deletes hits their claims.
        steps=(
            Form(),
            Steady(),
            Inject("delay", "m1->authority", {"by_ms": 250, "ways": "in"}),
            Inject("join", "group"),
            Hold(5400),
            Inject("expire", "m1"),
            Hold(3500),
            Heal("delay"),
        ),
        # Few records, spread over the members, so that the release does not wait for many commits over the slow link.
        defaults=Parameters(members=3, partitions=48, rate=7),
        settings=_STUBBORN,
        budget_s=22,
        members_min=2,
        not_applicable=_NO_OWNER_ZNODES,
        references=("KAFKA-262", "SOHU-Co/kafka-node PR 981", "Parsely/pykafka PR 308"),
    ),
    Scenario(
        name="flapping-member",
        symptom="One consumer crashes and restarts over and over, and the group does nothing but rebalance.",
        look_for=(
            "rebalances a minute, and the share of time in which partitions had an owner",
            "zookeeper: two rebalances for each crash (the process is back before its old session ends), each of which "
            "stops everybody; the sessions of dead processes pile up and keep a share of the partitions",
            "eager: fewer and longer ones, because each waits for the dead member's session; nobody delivers meanwhile",
            "cooperative and delayed: as many, but hardly more than the flapping member's partitions stop; consumer: "
            "an epoch for each return and for each dead member's session, and few partitions stop",
            "static: none, as long as the process is back within its session timeout; but a process that dies before "
            "its first commit delivers the same records each time",
        ),
        checks=("storm", "no storm"),
        steps=(Form(), Steady(), Inject("flap", "m2", {"times": 4, "every_ms": 700}), Settle()),
        budget_s=18,
        members_min=2,
        references=("KIP-345", "spreedly/kaffe issue 92"),
    ),
    Scenario(
        name="asymmetric-cut",
        symptom="A consumer's requests still arrive, but it gets no answers. The group looks healthy, and is not.",
        look_for=(
            "zookeeper: the member's pings arrive, and so does its next attempt to connect, which starts the session's "
            "timer again. The pauses of ZooKeeper's Java client are too long for more than that: the session ends "
            "about twice as late as after a full cut, others take over, and the member goes on delivering beside them. "
            "With -c zookeeper.reconnect=soon it keeps its partitions, but hears of no change, and others wait",
            "server: the session never ends, since the member tries again at once; but it stops delivering when it "
            "loses the connection, so its partitions stand still for as long as the cut lasts",
            "the other designs: a client that is not answered sends no second heartbeat, so it is replaced after a "
            "session timeout; its own timer has stopped it before. A consumer member has no such timer: it is replaced "
            "as well, and goes on delivering beside its successor until the heal",
        ),
        checks=(
            "outlives the silence",
            "two members deliver past the session",
            "replaced",
            "not promised: two members never deliver",
        ),
        steps=(Form(), Steady(), Inject("cut", "owner->authority", {"ways": "in"}), Hold(12_000), Heal()),
        # The member gives up a connection after up to one second and pauses for up to two: with a session of three, its
        # next attempt could be too late.
        settings=MappingProxyType({"zookeeper.session.timeout.ms": "3500"}),
        budget_s=23,
        members_min=2,
        brokers_min=2,
        references=("KIP-62", "ZOOKEEPER programmer's guide, sessions"),
    ),
    Scenario(
        name="slow-link",
        symptom="The network to one consumer gets slower and slower: when does that cost its place in the group?",
        look_for=(
            "zookeeper and server: past two thirds of zookeeper.session.timeout.ms the client gives up one connection "
            "after the other. Every attempt to reconnect that still arrives keeps the session alive, as in "
            "asymmetric-cut: it ends late, or not at all",
            "zookeeper goes on delivering, also beside its successor; server stops the member's partitions",
            "the other designs: when the round trip is about as long as session.timeout.ms. The member gives up first, "
            "and its partitions have no owner until the coordinator's timer ends too; in consumer it delivers until it "
            "learns of it",
        ),
        checks=("outlasts the delay", "not promised: two members never deliver"),
        steps=(
            Form(),
            Steady(),
            Inject("growing-delay", "owner->authority", {"to_ms": 3000, "within_ms": 6000}),
            Hold(10_000),
            Heal(),
        ),
        budget_s=22,
        members_min=2,
        brokers_min=2,
        references=("KIP-62", "ZOOKEEPER programmer's guide, sessions"),
    ),
)
