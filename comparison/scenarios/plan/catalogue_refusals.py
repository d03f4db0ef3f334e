"""The scenarios in which a group refuses members for good: no retry of theirs helps, only what others do."""

from __future__ import annotations

from types import MappingProxyType

from comparison.scenarios.plan.membership_vocabulary import RestartEach
from comparison.scenarios.plan.parameters import Parameters
from comparison.scenarios.plan.scenario import Scenario
from comparison.scenarios.plan.vocabulary import Form, Inject, JoinOne, LeaveOne, Settle, Steady
from kernel.designs import CONSUMER, SERVER, ZOOKEEPER

_LIMIT = 4

REFUSALS = (
    Scenario(
        name="strategy-change-in-one-bounce",
        symptom="I set another partition.assignment.strategy and restarted my consumers one by one: each ends with "
        "INCONSISTENT_GROUP_PROTOCOL.",
        look_for=(
            "a member needs a strategy that all others list, so each new process is refused as long as one of the old "
            "ones is in the group. It has no partitions, and its application ends with the error",
            "the last one finds an empty group, and has all of the work until the others are started again. So what a "
            "rolling change was to spare happens: for a while there is nobody, or only one",
            "static: the places of the old members stand for a session timeout after they have gone, so even the last "
            "one is refused, and the group stands still until these sessions end",
            "zookeeper: nobody is refused, for nobody votes; members with two strategies claim the same partitions, "
            "and their attempts fail until all have the same one",
            "what to do: protocol-migration. First restart all with both strategies in the list, then without the old "
            "one (KIP-429)",
        ),
        checks=(
            "no common strategy",
            "strategies conflict",
            "never owned by two members under a coordinator",
        ),
        steps=(Form(), Steady(), RestartEach(settings={"partition.assignment.strategy": "roundrobin"}, wait=False)),
        defaults=Parameters(members=3),
        members_min=2,
        counts_predicted=False,
        budget_s=20,
        not_applicable=MappingProxyType(
            {
                SERVER: "the strategy is a setting of the brokers, and their members list none",
                CONSUMER: "the coordinator assigns, so members need not agree on a strategy",
            }
        ),
        references=("KIP-429", "KIP-54", "KAFKA-7641"),
    ),
    Scenario(
        name="group-full",
        symptom="I added one consumer more, and it ends with GROUP_MAX_SIZE_REACHED.",
        look_for=(
            "the group has as many members as group.max.size allows (group.consumer.max.size in consumer), so the one "
            "that comes is refused; the others notice nothing, and no partition stops",
            "Kafka's classic consumer asks again with each poll of an application that goes on after the error; that "
            "of consumer raises it once, and stays out",
            "once a member has left, a process that is started again gets in",
            "what to do: no more members than the limit, or a higher one; it protects the coordinator from groups that "
            "grow by mistake",
        ),
        checks=(
            "refused for good",
            "full group",
            "never owned by two members under a coordinator",
            "kept partitions never stop",
        ),
        steps=(Form(_LIMIT), Steady(), JoinOne(), LeaveOne(), Inject("restart", f"m{_LIMIT + 1}"), Settle()),
        defaults=Parameters(members=_LIMIT),
        settings=MappingProxyType({"group.max.size": str(_LIMIT), "group.consumer.max.size": str(_LIMIT)}),
        counts_predicted=False,
        budget_s=14,
        not_applicable=MappingProxyType(
            {
                ZOOKEEPER: "its groups have no largest size",
                SERVER: "its groups have no largest size",
            }
        ),
        references=("KAFKA-7641", "KIP-389", "KIP-848"),
    ),
)
