"""A group that migrates from the classic protocol to the consumer protocol, and back, as the deciding code plays it.

For `docs/consumer-protocol.md`; the other stories on that page are those of `reconciliation`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from coordinator.groups.errors import Error
from tests.support.groups.consumer import by_name
from tests.support.groups.mixed import MixedPartition, assigned

if TYPE_CHECKING:
    from collections.abc import Iterable

TOPIC = "foo"


class Step(NamedTuple):
    """A request and its answer, and whose group it is then."""

    says: str
    who: str
    sent: str
    answered: str
    group: str


class _Migration:
    def __init__(self) -> None:
        self.at = MixedPartition()
        self.rows: list[Step] = []
        self.ids = dict(zip(("m1", "m2"), self.at.form("m1", "m2"), strict=True))

    def classic(self, who: str, says: str) -> None:
        """JoinGroup and SyncGroup of an eager member, which owns nothing meanwhile."""
        member = self.ids[who]
        answer = self.at.join(member)
        self._row(says, who, "JoinGroup", f"generation {answer.generation}")
        given = assigned(self.at.sync(member).assignment)
        self._row("and learns what it has", who, "SyncGroup", f"assigned {_numbers(given.get(TOPIC, ()))}")

    def heartbeat(self, who: str, says: str) -> None:
        error = self.at.beat(self.ids[who])
        self._row(says, who, "Heartbeat", "answered" if error is Error.NONE else error.name)

    def consumer(self, who: str, says: str, epoch: int, owned: Iterable[int] | None = None) -> None:
        answer = self.at.consumer(who, epoch, None if owned is None else {TOPIC: owned})
        given_now = by_name(answer.assignment)
        said = "" if given_now is None else f", assigned {_numbers(given_now.get(TOPIC, ()))}"
        has = "" if owned is None else f", owns {_numbers(owned)}"
        self._row(says, who, f"ConsumerGroupHeartbeat, epoch {epoch}{has}", f"epoch {answer.epoch}{said}")

    def leave(self, who: str, says: str) -> None:
        self.at.leave(self.ids[who])
        self._row(says, who, "LeaveGroup", "answered")

    def _row(self, says: str, who: str, sent: str, answered: Any) -> None:
        self.rows.append(Step(says, who, sent, answered, self.at.kind))


def _numbers(numbers: Iterable[int]) -> str:
    return ", ".join(map(str, sorted(numbers))) or "nothing"


def migration() -> tuple[Step, ...]:
    """Two classic members, a member of the consumer protocol that joins them, and its departure."""
    story = _Migration()
    story.consumer("m3", "m3 joins with the consumer protocol: the group is another one now", 0)
    story.heartbeat("m1", "m1 is called to rejoin, as ever")
    story.classic("m1", "it gets its new part at once: nobody waits for m2")
    story.consumer("m3", "what m1 has given up is m3's", 2)
    story.heartbeat("m2", "m2 is called when it asks")
    story.classic("m2", "m2 rejoins, too")
    story.consumer("m3", "m3 has its target", 2)
    story.consumer("m3", "m3 leaves: no member of the consumer protocol is left", -1)
    story.heartbeat("m1", "the group is classic again, and calls its members")
    return tuple(story.rows)
