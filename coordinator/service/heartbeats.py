"""The handler of Heartbeat, the most frequent request of a coordinator, and its fast path.

Between two rebalances a member repeats the same bytes, except for the correlation id. They are decoded and looked up
once; after that a heartbeat costs a check that nothing has changed, and setting the session's new deadline. If
something has changed, the normal path handles the request, so both paths give the same answers.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from coordinator.groups.classic.session_timers import postpone
from coordinator.groups.classic.states import GroupState
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
    from kernel.broker.cluster.cluster_view import ClusterSnapshot
    from kernel.broker.cluster.leadership import Cluster
    from kernel.broker.server.handlers import CachedResponse, RequestContext, Response

#: The answer while the group is loading.
LOADING = Error.NONE

# Module names: looking them up in the class, or hashing them, would take a tenth of the fast path.
_STABLE, _COMPLETING, _PREPARING = GroupState.STABLE, GroupState.COMPLETING, GroupState.PREPARING


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
        """The fast path for a member of the current generation; None for all others.

        A member that has to rejoin gets none either: its next request is a JoinGroup.
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
        return _FastPath(
            cluster=cluster,
            snapshot=snapshot,
            partition=at,
            group=group,
            generation=generation,
            member=group.members[member_id],
            monotonic_ns=self._services.runtime.clock.monotonic_ns,
            good=tails[Error.NONE],
            rebalancing=tails[Error.REBALANCE_IN_PROGRESS],
        ).answer


@dataclass(slots=True, kw_only=True)
class _FastPath:
    """What a heartbeat's bytes refer to, valid as long as the checks in `answer` pass.

    These few suffice: a partition no longer led is closed; a group that ends is Dead; a removed or replaced member has
    no session timer.
    """

    cluster: Cluster
    snapshot: ClusterSnapshot  #: determines the group's partition
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
        return tail if postpone(member.session_timer, deadline_ms) else None
