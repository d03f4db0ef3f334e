"""The handler of Heartbeat, which is most of what a coordinator is asked: as any other request, and a short way.

Between two rebalances a member sends the same bytes again and again, but for the correlation id. What they mean is
looked up once; from then on a heartbeat costs a check that nothing of it has changed, and the stamp of the session's
new deadline. Whatever has changed is handled as the first one was, so the answers are the same either way.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator.groups.classic.session_timers import postponed
from coordinator.groups.classic.states import State
from coordinator.groups.errors import Error
from coordinator.service import translation
from coordinator.service.led_partition import LedPartition
from kernel.broker.server.handlers import Encoded
from kernel.clock import NS_PER_MS
from kernel.wire.heartbeats import TAILS

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from coordinator.groups.answers import HeartbeatAnswer
    from coordinator.groups.classic.group import Group
    from coordinator.groups.classic.member import Member
    from coordinator.service.coordinator import Coordinator
    from kernel.broker.cluster.cluster_view import ClusterSnapshot, ClusterView
    from kernel.broker.server.handlers import CachedResponse, RequestContext, Response

#: What heartbeats are told while the group is being loaded.
LOADING = Error.NONE

# Names of their own: looking them up in the class, or hashing them, would be a tenth of the short way.
_STABLE, _COMPLETING, _PREPARING = State.STABLE, State.COMPLETING, State.PREPARING


class HeartbeatHandler:
    """`kernel.broker.server.handlers.Repeatable`."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._services = coordinator.services
        self._partitions = coordinator.partitions

    def __call__(self, context: RequestContext, body: Any) -> Response | Awaitable[Response]:
        tails = TAILS[context.version]
        at = self._partitions.at(body.group_id) if body.group_id else Error.INVALID_GROUP_ID
        if isinstance(at, Error):
            return Encoded(tails[LOADING if at is Error.COORDINATOR_LOAD_IN_PROGRESS else at])

        def encoded(answer: HeartbeatAnswer) -> Encoded:
            return Encoded(tails[answer.error])

        return at.ask(functools.partial(translation.heartbeat, body), encoded)

    def repeat(self, context: RequestContext, body: Any) -> CachedResponse | None:
        """The short way for a member of the current generation, for as long as it is one; None for all others.

        Nor is there one for whoever was told to rejoin: what it sends next is a JoinGroup.
        """
        group_id, member_id = body.group_id, body.member_id
        cluster = self._services.cluster
        snapshot = cluster.snapshot
        at = self._partitions.at(group_id) if group_id else Error.INVALID_GROUP_ID
        if not isinstance(at, LedPartition):
            return None
        instance_id = getattr(body, "group_instance_id", None)
        generation = body.generation_id
        group = at.machine.classic.groups.get(group_id)
        if (
            group is None
            or group.state is _PREPARING
            or group.refusal_at(generation, member_id, instance_id) is not None
        ):
            return None
        tails = TAILS[context.version]
        return _Standing(
            cluster=cluster,
            snapshot=snapshot,
            partition=at,
            group=group,
            generation=generation,
            member=group.members[member_id],
            monotonic_ns=self._services.clock.monotonic_ns,
            good=tails[Error.NONE],
            rebalancing=tails[Error.REBALANCE_IN_PROGRESS],
        ).answer


@dataclass(slots=True, kw_only=True)
class _Standing:
    """What a member's heartbeat was found to mean, to be looked at again with the next one.

    As little as says it: a partition that is led no more is closed; a group goes away by the state Dead; and whoever
    is no member any more (removed, or replaced by another process with its instance id) has no timer set.
    """

    cluster: ClusterView
    snapshot: ClusterSnapshot  #: how many partitions there were, and so which one is the group's
    partition: LedPartition
    group: Group
    generation: int
    member: Member
    monotonic_ns: Callable[[], int]
    good: bytes
    rebalancing: bytes

    def answer(self) -> bytes | None:
        """`kernel.broker.server.handlers.CachedResponse`."""
        group = self.group
        if group.generation != self.generation or self.partition.closed or self.cluster.snapshot is not self.snapshot:
            return None
        state = group.state
        if state is _STABLE or state is _COMPLETING:
            tail = self.good
        elif state is _PREPARING:
            tail = self.rebalancing
        else:
            return None
        member = self.member
        deadline_ms = self.monotonic_ns() // NS_PER_MS + member.session_timeout_ms
        return tail if postponed(member.vigil, deadline_ms) else None
