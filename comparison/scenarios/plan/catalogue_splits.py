"""Split brains on an ensemble of three ZooKeeper servers: views that differ, two owners, a commit of a zombie.

Each has a variant with the option that mends it, which a comparison shows beside it.
"""

from __future__ import annotations

from dataclasses import replace
from types import MappingProxyType

from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import (
    CutAuthority,
    Form,
    FreezeOwner,
    Heal,
    Hold,
    Inject,
    JoinBehind,
    Settle,
    Steady,
)
from kernel.designs import DESIGN_NAMES, ZOOKEEPER

#: How far the follower lags: longer than it takes members to rebalance, and another one to join, on a busy machine.
_LAG_MS = 1500
#: A member waits for several answers that take the lag, and kazoo gives a server up after two thirds of its session
#: timeout. With the default of 4 tries, a rebalance could end before a dead member's session.
_PATIENT = MappingProxyType({"zookeeper.session.timeout.ms": "6000", "rebalance.max.retries": "8"})

_ONLY_OLD = MappingProxyType(
    {design: f"the option is one of {ZOOKEEPER}" for design in DESIGN_NAMES if design != ZOOKEEPER}
)
_ONLY_NODES = MappingProxyType(
    {
        design: "members of this design do not read which brokers there are from ZooKeeper"
        for design in DESIGN_NAMES
        if design != ZOOKEEPER
    }
)

_STALE_VIEW = Scenario(
    name="stale-view",
    symptom="Two members divided the partitions by different lists of members, and claimed the same ones.",
    look_for=(
        "zookeeper: the member whose ZooKeeper server lags decides by an old list; its claims conflict with those "
        "of members that know more, so its attempt fails and costs a backoff while partitions have no owner",
        "it never becomes a second owner: claims are writes, and go through the leader",
        "stale-view-synced is the same with fix.sync.before.reads: beside it, who decides by an old list, and how "
        "long the group takes to settle",
        "the other designs: the coordinating broker's server lags; one decides, so nobody disagrees",
    ),
    checks=("claims conflict", "knows the group", "never owned by two members"),
    steps=(
        Form(),
        Steady(),
        Inject("delay", "follower->ensemble", {"by_ms": _LAG_MS, "ways": "in"}),
        # Between the first one's reads and its claims, which arrive with the lag: a start takes time as well.
        JoinBehind(after_ms=_LAG_MS * 2 // 5),
        Heal(),
    ),
    defaults=Parameters(partitions=6, time_limit_s=120),  # each claim and release waits for the lag
    settings=_PATIENT,
    budget_s=25,
    zookeeper_servers=3,
    members_min=2,
    brokers_min=2,
    references=("ZOOKEEPER programmer's guide, consistency guarantees",),
)

_DOUBLE_OWNER = Scenario(
    name="double-owner",
    like="split-brain",
    symptom="Two consumers delivered the same partitions for seconds, each sure that it was the owner.",
    look_for=(
        "zookeeper: the owner's ZooKeeper server is cut off from the other two; it goes on answering reads, so the "
        "owner notices nothing, while the others end its session and take its partitions over",
        "the same run as split-brain; its variants show what can be done, and what is worse",
        "double-owner-fenced: with fix.commit.fence both still deliver, but only the new owner can commit",
        "double-owner-no-broker: the brokers' sessions are with the server that is cut off as well, so nobody "
        "takes the partitions over before the heal",
    ),
    steps=(Form(), Steady(), CutAuthority()),
    defaults=Parameters(time_limit_s=60),
    budget_s=25,
    zookeeper_servers=3,
    members_min=2,
    brokers_min=2,
    same_run_as=MappingProxyType(dict.fromkeys(DESIGN_NAMES, "split-brain")),
    references=("ZOOKEEPER programmer's guide, consistency guarantees",),
)

_ZOMBIE_COMMIT = Scenario(
    name="zombie-commit",
    symptom="A consumer that had been replaced during a long pause came back, and its commit was accepted.",
    look_for=(
        "zookeeper: no write of the old session is accepted after its expiry; the client opens a new session by "
        "itself, and the pending offset is written in the new session: nothing binds an offset to the owner",
        "zombie-commit-fenced is the same with fix.commit.fence=session: refused",
        "the other designs: refused by generation or member id",
    ),
    checks=(
        "old commits refused",
        "zombie commits after a pause",
        "no write of an ended session",
        "two members deliver after a pause",
        "no stale write",
        "no offset moved back if fenced",
        "not promised: two members never deliver",
    ),
    steps=(Form(), Steady(), FreezeOwner()),
    defaults=Parameters(time_limit_s=60),
    budget_s=20,
    zookeeper_servers=3,
    members_min=2,
    brokers_min=2,
    needs_steady_load=True,
    references=("KIP-62", "KAFKA-2431"),
)

#: A variant equals its scenario, except for what is said here.
SPLITS = (
    _STALE_VIEW,
    replace(
        _STALE_VIEW,
        name="stale-view-synced",
        variant_of="stale-view",
        symptom="Like stale-view, but each member asks its ZooKeeper server to catch up before it reads.",
        look_for=(
            "the member at the lagging server knows who has joined: it does not claim what belongs to others",
            "the price: each attempt waits for the lag twice, so compare how long the group took to settle, and the "
            "ZooKeeper operations, with stale-view",
            "other members' attempts still fail, as in any join, on partitions that are not yet released",
        ),
        settings=MappingProxyType({**_PATIENT, "fix.sync.before.reads": "true"}),
        budget_s=30,
        not_applicable=_ONLY_OLD,
        references=(),
    ),
    _DOUBLE_OWNER,
    replace(
        _DOUBLE_OWNER,
        name="double-owner-fenced",
        variant_of="double-owner",
        like="split-brain",
        symptom="Like double-owner, but a member commits only in the session in which it claimed.",
        look_for=(
            "no offset moves back: the commits of the old owner are refused, during the cut and after the heal",
            "both still deliver during the cut: no option of a member can tell that its server is cut off",
            "the price: what a refused commit was for is delivered again; compare the duplicates",
        ),
        settings=MappingProxyType({"fix.commit.fence": "session"}),
        not_applicable=_ONLY_OLD,
        same_run_as=MappingProxyType({}),
        references=(),
    ),
    Scenario(
        name="double-owner-no-broker",
        variant_of="double-owner",
        symptom="A ZooKeeper server was cut off, and for the whole cut nobody took over a consumer's partitions.",
        look_for=(
            "the sessions of the brokers end with that of the owner; the other members read that there are no brokers, "
            "and end their rebalance as if it had succeeded",
            "its partitions have no owner from then until the heal, when the brokers register again; Kafka 0.8 and 1.1 "
            "left four partitions unclaimed for 9 s",
            "meanwhile the old owner delivers them, and the brokers serve it",
        ),
        checks=("nobody takes over",),
        # The brokers' sessions end first: members look at the brokers only in a rebalance.
        steps=(
            Form(settings=MappingProxyType({"zookeeper.session.timeout.ms": "6000"})),
            Steady(),
            Inject("cut", "follower->ensemble"),
            Hold(14_000),
            Heal(),
            Hold(4_000),  # until the owner and the brokers know that their sessions have ended
            Settle(),
        ),
        defaults=Parameters(time_limit_s=90),
        budget_s=35,
        zookeeper_servers=3,
        brokers_on_cut_server=True,
        members_min=2,
        brokers_min=2,
        needs_steady_load=True,
        not_applicable=_ONLY_NODES,
    ),
    _ZOMBIE_COMMIT,
    replace(
        _ZOMBIE_COMMIT,
        name="zombie-commit-fenced",
        variant_of="zombie-commit",
        symptom="Like zombie-commit, but a member commits only in the session in which it claimed.",
        look_for=(
            "the pending commit is refused, and no offset moves back",
            "the price: what a refused commit was for is delivered again; compare the duplicates",
        ),
        settings=MappingProxyType({"fix.commit.fence": "session"}),
        not_applicable=_ONLY_OLD,
        references=(),
    ),
)
