"""The handler of Heartbeat, which is most of what a coordinator is asked: as any other request, and a short way.

Between two rebalances a member sends the same bytes again and again, but for the correlation id. What they mean is
looked up once; from then on a heartbeat costs a check that nothing of it has changed, and the stamp of the session's
new deadline. Whatever has changed is handled as the first one was, so the answers are the same either way.
"""

from __future__ import annotations

import functools
from typing import TYPE_CHECKING, Any

from coordinator import translation
from coordinator.group.errors import Error
from coordinator.group.states import State
from coordinator.group.vigils import postponed
from coordinator.partition import LedPartition
from kernel.broker.handlers import Encoded
from kernel.clock import NS_PER_MS
from kernel.wire.heartbeats import TAILS

if TYPE_CHECKING:
    from collections.abc import Awaitable

    from coordinator.gate import Coordinator
    from coordinator.group.answers import HeartbeatAnswer
    from kernel.broker.handlers import Again, Answer, RequestContext

#: What heartbeats are told while the group is being loaded.
LOADING = Error.NONE

# Names of their own: looking them up in the class, or hashing them, would be a tenth of the short way.
_STABLE, _COMPLETING, _PREPARING = State.STABLE, State.COMPLETING, State.PREPARING


class HeartbeatHandler:
    """`kernel.broker.handlers.Repeatable`."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._coordinator = coordinator

    def __call__(self, context: RequestContext, body: Any) -> Answer | Awaitable[Answer]:
        tails = TAILS[context.version]
        at = self._coordinator.at(body.group_id) if body.group_id else Error.INVALID_GROUP_ID
        if isinstance(at, Error):
            return Encoded(tails[LOADING if at is Error.COORDINATOR_LOAD_IN_PROGRESS else at])

        def encoded(answer: HeartbeatAnswer) -> Encoded:
            return Encoded(tails[answer.error])

        return at.ask(functools.partial(translation.heartbeat, body), encoded)

    def repeat(self, context: RequestContext, body: Any) -> Again | None:
        """The short way for a member of the current generation, for as long as it is one; None for all others.

        Nor is there one for whoever was told to rejoin: what it sends next is a JoinGroup.
        """
        coordinator, group_id, member_id = self._coordinator, body.group_id, body.member_id
        cluster = coordinator.services.cluster
        snapshot = cluster.snapshot  # how many partitions there are, and so which one is the group's
        number = coordinator.number_of(group_id)
        at = coordinator.at_number(number) if group_id else Error.INVALID_GROUP_ID
        if not isinstance(at, LedPartition):
            return None
        instance_id = getattr(body, "group_instance_id", None)
        generation = body.generation_id
        groups = at.shard.classic.groups
        group = groups.get(group_id)
        if (
            group is None
            or group.state is _PREPARING
            or group.refusal_at(generation, member_id, instance_id) is not None
        ):
            return None
        members, instances, member = group.members, group.instances, group.members[member_id]
        tails = TAILS[context.version]
        good, rebalancing = tails[Error.NONE], tails[Error.REBALANCE_IN_PROGRESS]
        monotonic_ns = coordinator.services.clock.monotonic_ns

        def again() -> bytes | None:
            if (
                cluster.snapshot is not snapshot
                or coordinator.at_number(number) is not at
                or groups.get(group_id) is not group
                or group.generation != generation
                or members.get(member_id) is not member
                or (instance_id is not None and instances.get(instance_id) != member_id)
            ):
                return None
            state = group.state
            if state is _STABLE or state is _COMPLETING:
                tail = good
            elif state is _PREPARING:
                tail = rebalancing
            else:
                return None
            deadline_ms = monotonic_ns() // NS_PER_MS + member.session_timeout_ms
            return tail if postponed(member.vigil, deadline_ms) else None

        return again
