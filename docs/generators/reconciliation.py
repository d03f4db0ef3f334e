"""Stories of a group of the `consumer` design, as the deciding code plays them: `docs/consumer-protocol.md` shows them.

Each story plays heartbeats, commits and time against the coordinator's own groups (`coordinator.groups.consumer`), and
keeps what was sent, what was answered, and who has which partition then.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from coordinator.groups.consumer.fencing import commit_refusal
from coordinator.groups.consumer.requests import ConsumerSettings
from coordinator.groups.consumer_records import (
    ClientKey,
    CurrentKey,
    CurrentRecord,
    EpochKey,
    EpochRecord,
    TargetEpochKey,
    TargetEpochRecord,
    TargetKey,
    TargetRecord,
)
from coordinator.groups.errors import Error
from tests.support.groups.consumer import GROUP, World, by_name, topic_id

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from coordinator.groups.answers import ConsumerHeartbeatAnswer
    from coordinator.groups.consumer.member import ConsumerMember
    from coordinator.groups.consumer_records import ConsumerKey, ConsumerRecord

TOPIC, PARTITIONS = "orders", 6
#: Kafka's defaults, which the brokers have, too.
SETTINGS = ConsumerSettings()
REBALANCE_TIMEOUT_MS = 300_000  #: max.poll.interval.ms, which members send as their rebalance timeout
HEARTBEAT = SETTINGS.heartbeat_interval_ms
NOTHING: tuple[int, ...] = ()


class Owner(NamedTuple):
    """Who has a partition: "" for nobody. `leaves`: the member has yet to give it up, as it was asked to."""

    member: str
    leaves: bool


class Row(NamedTuple):
    """A request and its answer, and the group after both; a row without `who` is something that just happens."""

    says: str
    who: str
    sent: str
    answered: str
    state: str  #: of that member
    owners: tuple[Owner, ...]  #: by partition
    group: str


class Story:
    """A world with members that are named like `m1`, and the rows of what they did in it."""

    def __init__(self) -> None:
        self.world = World({TOPIC: PARTITIONS}, SETTINGS)
        self.rows: list[Row] = []

    def settle(self, *members: str, **fields: object) -> None:
        """Let members join and heartbeat until the group is stable; the story begins afterwards."""
        for member in members:
            self.world.join(member, TOPIC, rebalance_timeout_ms=REBALANCE_TIMEOUT_MS, **fields)
            while self.world.group.state.value != "Stable":
                for each in self.world.group.members.values():
                    self.world.ask(each.id, each.epoch, owned=each.assigned, instance_id=each.instance_id)

    def join(self, who: str, says: str, **fields: object) -> None:
        answer = self.world.join(who, TOPIC, rebalance_timeout_ms=REBALANCE_TIMEOUT_MS, **fields)
        self._add(says, who, "joins, epoch 0", answer)

    def beat(self, who: str, says: str, owned: Sequence[int] | None = None, epoch: int | None = None) -> None:
        """A heartbeat with the epoch that the member knows; `owned` is what it says that it has."""
        known = self.world.epochs[who] if epoch is None else epoch
        sent = f"epoch {known}" + ("" if owned is None else f", owns {_numbers(owned)}")
        rows = None if owned is None else {topic_id(TOPIC): frozenset(owned)}
        member = self.world.group.members.get(who)
        instance_id = None if member is None else member.instance_id
        self._add(says, who, sent, self.world.ask(who, known, owned=rows, instance_id=instance_id))

    def leave(self, who: str, says: str, epoch: int) -> None:
        instance_id = self.world.group.members[who].instance_id
        self._add(says, who, f"epoch {epoch}", self.world.ask(who, epoch, instance_id=instance_id))

    def commit(self, who: str, says: str, epoch: int, partition: int) -> None:
        error = commit_refusal(self.world.group, who, epoch, version=9)
        sent = f"commits {partition}, epoch {epoch}"
        self._row(says, who, sent, "accepted" if error is None else error.name)

    def wait(self, ms: int, says: str, *heartbeating: str) -> None:
        """Time passes; the sessions of those named go on."""
        end = self.world.now_ms + ms
        while self.world.now_ms < end:
            self.world.advance(min(HEARTBEAT, end - self.world.now_ms))
            for who in heartbeating if self.world.now_ms < end else ():
                self.world.beat(who)
        self._row(says, "", "", "")

    def _add(self, says: str, who: str, sent: str, answer: ConsumerHeartbeatAnswer) -> None:
        target = by_name(answer.assignment)
        answered = answer.error.name
        if answer.error is Error.NONE:
            assigned = "" if target is None else f", assigned {_numbers(target.get(TOPIC, NOTHING))}"
            answered = f"epoch {answer.epoch}{assigned}"
        self._row(says, who, sent, answered)

    def _row(self, says: str, who: str, sent: str, answered: str) -> None:
        group = self.world.group
        member = group.members.get(who)
        state = f"group epoch {group.epoch}, target epoch {group.target_epoch}, {group.state.value}"
        member_state = "" if member is None else _state_of(member)
        self.rows.append(Row(says, who, sent, answered, member_state, self._owners(), state))

    def _owners(self) -> tuple[Owner, ...]:
        group, found = self.world.group, []
        for number in range(PARTITIONS):
            member = group.owners.get((topic_id(TOPIC), number), "")
            leaves = bool(member) and number in group.members[member].revoking.get(topic_id(TOPIC), frozenset())
            found.append(Owner(member, leaves))
        return tuple(found)


def _state_of(member: ConsumerMember) -> str:
    return f"{member.state.name} at {member.epoch}"


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "nothing"


# -- the stories -------------------------------------------------------------------------------------------------------


def _told() -> Story:
    """Both members have learned what to give up, and the first one has done so."""
    story = Story()
    story.settle("m1", "m2")
    story.join("m3", "m3 joins: the group gets epoch 3 and a new target at once")
    story.beat("m1", "m1 learns what it keeps: 2 is to go")
    story.beat("m2", "m2 learns the same of 5, and works on a long record")
    story.beat("m1", "m1 has given up 2, and says so at once", owned=(0, 1))
    story.beat("m3", "m3 may have 2, though m2 has not moved")
    story.beat("m3", "m3 says that it has it", owned=(2,))
    return story


def reconciliation() -> tuple[Row, ...]:
    """A member joins two, of which one is slow: nobody waits for it but the newcomer, and only for one partition."""
    story = _told()
    story.beat("m2", "m2 is still busy; its heartbeats say nothing new")
    story.beat("m2", "m2 has polled, and given up 5", owned=(3, 4))
    story.beat("m3", "m3 has all that its target names")
    return tuple(story.rows)


def too_slow() -> tuple[Row, ...]:
    """The same, but the slow member takes longer than its rebalance timeout."""
    story = _told()
    story.commit("m2", "m2 may still commit, even 5: its epoch has not changed", 2, 5)
    first = len(story.rows) - 1
    story.wait(
        REBALANCE_TIMEOUT_MS,
        "five minutes after it was asked, m2 is removed: its partitions are free",
        "m1",
        "m2",
        "m3",
    )
    story.beat("m3", "the next heartbeat of anybody computes the new target; what m3 gets is free")
    story.beat("m1", "the same for m1")
    story.beat("m2", "m2's heartbeat is refused; it loses all, and has to join again", epoch=2)
    story.commit("m2", "so are its commits", 2, 5)
    return tuple(story.rows[first:])


def fenced() -> tuple[Row, ...]:
    """What epochs refuse, and what they forgive."""
    story = Story()
    story.settle("m1", "m2")
    story.join("m3", "m3 joins")
    story.beat("m1", "m1 is asked to give up 2")
    story.beat("m1", "m1 has done so; suppose that this answer is lost", owned=(0, 1))
    first = len(story.rows)
    story.commit("m1", "a commit with the epoch that m1 still knows is stale", 2, 0)
    story.beat(
        "m1",
        "the same heartbeat again is forgiven: it has the epoch before, and owns nothing that is not its own",
        (0, 1),
        2,
    )
    story.commit("m1", "with the new epoch it may commit, even what is another's: ownership is not checked", 3, 4)
    story.beat("m1", "an older epoch is not forgiven", epoch=1)
    return tuple(story.rows[first:])


def static() -> tuple[Row, ...]:
    """A static member is restarted, and a second process takes its name."""
    story = Story()
    story.settle("m1", instance_id="i1")
    story.settle("m2", instance_id="i2")
    story.leave("m2", "m2, named i2, closes: it will be back", -2)
    story.beat("m1", "m1 notices nothing")
    story.join("m2.2", "a new process named i2 gets the place, and with it the partitions", instance_id="i2")
    story.beat("m1", "the group's epoch has not changed")
    story.join("m2.3", "a second one while the first is running: the newcomer loses", instance_id="i2")
    return tuple(story.rows)


# -- records -----------------------------------------------------------------------------------------------------------

#: Key versions in `__consumer_offsets`, with Kafka's names.
RECORDS = {
    EpochKey: (3, "ConsumerGroupMetadata"),
    ClientKey: (5, "ConsumerGroupMemberMetadata"),
    TargetEpochKey: (6, "ConsumerGroupTargetAssignmentMetadata"),
    TargetKey: (7, "ConsumerGroupTargetAssignmentMember"),
    CurrentKey: (8, "ConsumerGroupCurrentMemberAssignment"),
}


def records() -> tuple[tuple[int, str, str, str], ...]:
    """What the coordinator writes when the third member joins: version, name, of which member, and what it says."""
    story = Story()
    story.settle("m1", "m2")
    before = len(story.world.written)
    story.join("m3", "")
    return tuple(_record(key, record) for key, record in story.world.written[before:])


def _record(key: ConsumerKey, record: ConsumerRecord | None) -> tuple[int, str, str, str]:
    version, name = RECORDS[type(key)]
    assert key.group_id == GROUP
    member = getattr(key, "member_id", "")
    match record:
        case EpochRecord(epoch, _) | TargetEpochRecord(epoch):
            says = f"epoch {epoch}"
        case TargetRecord(partitions):
            says = _numbers((by_name(partitions) or {}).get(TOPIC, NOTHING))
        case CurrentRecord(epoch, previous_epoch, _, assigned, _):
            has = _numbers((by_name(assigned) or {}).get(TOPIC, NOTHING))
            says = f"epoch {epoch}, before that {previous_epoch}; has {has}"
        case _:
            says = "what its client said: subscription, timeout, names"
    return version, name, member, says
