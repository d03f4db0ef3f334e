"""The handlers of the group protocol: find the partition, translate, ask its machine, translate back.

A handler returns the answer if the machine has it at once; otherwise an awaitable, for a parked JoinGroup or SyncGroup
or for a write.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
from collections.abc import Awaitable
from typing import TYPE_CHECKING, Any

from coordinator.groups.answers import (
    CommitAnswer,
    DeleteGroupAnswer,
    DeleteOffsetsAnswer,
    JoinAnswer,
    LeaveAnswer,
    PartitionError,
    SyncAnswer,
)
from coordinator.groups.consumer.fencing import fetch_refusal
from coordinator.groups.errors import Error
from coordinator.groups.inspection import GroupDescription
from coordinator.groups.requests import DeleteGroup
from coordinator.service import translation
from coordinator.service.group_answers import JOIN_ANSWERS, SYNC_ANSWERS
from coordinator.service.led_partition import LedPartition, next_token
from coordinator.service.record_codec import TEXT_BYTES_MAX
from kernel.broker.server.handlers import Encoded, in_rows
from kernel.random_ids import fresh_base64_id, fresh_id
from kernel.wire import commit_messages

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from random import Random

    from coordinator.groups.requests import Commit, OffsetToCommit
    from coordinator.service.coordinator import Coordinator
    from coordinator.service.group_requests import JoinBody, SyncBody
    from kernel.broker.server.handlers import RequestContext, Response

    #: Makes a commit of some of its offsets, for a token.
    MakeCommit = Callable[[tuple[OffsetToCommit, ...], int], Commit]

Plain = dict[str, Any]
PlainResponse = Plain | None
Body = Any

#: The answer to SyncGroup while the group is loading (for Heartbeat see `coordinator.service.heartbeats`).
LOADING_SYNC = Error.REBALANCE_IN_PROGRESS

#: Groups of one request deleted at a time.
DELETED_AT_ONCE = 50
#: Leaves room for what a member id adds to a client or instance id.
_ID_BYTES_MAX = TEXT_BYTES_MAX - 64


class GroupHandlers:
    """Membership and administration of groups."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._partitions = coordinator.partitions
        self._random = coordinator.services.runtime.random

    def _at(self, group_id: str) -> LedPartition | Error:
        """Groups with members need a name; only offsets can do without."""
        return self._partitions.at(group_id) if group_id else Error.INVALID_GROUP_ID

    def join(self, context: RequestContext, body: JoinBody) -> Response | Awaitable[Response]:
        at = self._at(body.group_id)
        if isinstance(at, LedPartition) and body.size > _ID_BYTES_MAX and _overlong(body, context.client_id):
            at = Error.INVALID_REQUEST
        version = context.version
        if isinstance(at, Error):
            return JOIN_ANSWERS[version](JoinAnswer(error=at, member_id=body.member_id))
        token = next_token()
        request = translation.join(
            body,
            version,
            token,
            client_id=context.client_id,
            host=context.host,
            fresh_id=_fresh_id(at, body, self._random),
        )
        return at.put(token, request, JOIN_ANSWERS[version])

    def sync(self, context: RequestContext, body: SyncBody) -> Response | Awaitable[Response]:
        version = context.version
        if translation.lacks_protocol(body, version):  # checked before everything else, even the group id
            return SYNC_ANSWERS[version](SyncAnswer(Error.INCONSISTENT_GROUP_PROTOCOL))
        at = self._at(body.group_id)
        if isinstance(at, Error):
            error = LOADING_SYNC if at is Error.COORDINATOR_LOAD_IN_PROGRESS else at
            return SYNC_ANSWERS[version](SyncAnswer(error))
        token = next_token()
        return at.put(token, translation.sync(body, version, token), SYNC_ANSWERS[version])

    def leave(self, context: RequestContext, body: Body) -> Plain | Awaitable[PlainResponse]:
        version = context.version
        at = self._at(body.group_id)
        if isinstance(at, Error):
            return translation.leave_answer(LeaveAnswer(error=at), version)
        return at.ask(
            functools.partial(translation.leave, body, version),
            functools.partial(translation.leave_answer, version=version),
        )

    def describe(self, context: RequestContext, body: Body) -> Response:
        return in_rows({}, "groups", self._described(context, body))

    def _described(self, context: RequestContext, body: Body) -> Iterator[Plain]:
        operations = getattr(body, "include_authorized_operations", False)
        names_absent = context.version >= translation.DESCRIBE_NAMES_ABSENT_GROUP
        for group_id in body.groups:
            at = self._partitions.at(group_id)
            if isinstance(at, Error):
                yield translation.described(group_id, GroupDescription(), error=at, operations=False)
                continue
            group = at.machine.describe(group_id)
            absent = not at.machine.knows(group_id)
            error = Error.GROUP_ID_NOT_FOUND if absent and names_absent else Error.NONE
            shows = operations and error is Error.NONE
            yield translation.described(group_id, group, error=error, operations=shows)

    def list(self, context: RequestContext, body: Body) -> Response:
        led = self._partitions.led()
        if isinstance(led, Error):
            return {"error_code": int(led), "groups": []}
        states, types = getattr(body, "states_filter", ()), getattr(body, "types_filter", ())
        groups = (group for partition in led for group in partition.machine.list(states, types))
        rows = (None if group is None else translation.listed(group) for group in groups)
        return in_rows({"error_code": int(Error.NONE)}, "groups", rows)

    async def delete(self, context: RequestContext, body: Body) -> Plain:
        """Several groups, possibly of several partitions, each with its own result."""
        group_ids = list(dict.fromkeys(body.groups_names))
        results: list[Plain] = []
        for at in range(0, len(group_ids), DELETED_AT_ONCE):
            some = group_ids[at : at + DELETED_AT_ONCE]
            results += await asyncio.gather(*(self._delete_one(group_id) for group_id in some))
        return {"results": results}

    async def _delete_one(self, group_id: str) -> Plain:
        def row(answer: DeleteGroupAnswer) -> Plain:
            return {"group_id": group_id, "error_code": int(answer.error)}

        at = self._partitions.at(group_id)
        if isinstance(at, Error):
            return row(DeleteGroupAnswer(at))
        answer = await _settled(at.ask(lambda token: DeleteGroup(token=token, group_id=group_id), row))
        assert answer is not None, "deleting is always answered"
        return answer


class OffsetHandlers:
    """Committed offsets. The group id may be empty in plain commits and fetches only."""

    def __init__(self, coordinator: Coordinator) -> None:
        self._partitions = coordinator.partitions
        self._topics = coordinator.topics
        self._verifier = coordinator.verifier
        self._in_zookeeper = coordinator.zookeeper_offsets

    def _at(self, group_id: str) -> LedPartition | Error:
        return self._partitions.at(group_id) if group_id else Error.INVALID_GROUP_ID

    def commit(self, context: RequestContext, body: Body) -> Response | Awaitable[Response]:
        if context.version == translation.IN_ZOOKEEPER:
            return self._commit_in_zookeeper(body)
        request = functools.partial(translation.commit, body, context.version, client_id=context.client_id)
        return self._commit(body, request, self._partitions.at, accepted=context.version)

    def commit_in_transaction(self, context: RequestContext, body: Body) -> Response | Awaitable[Response]:
        """TxnOffsetCommit."""
        request = functools.partial(translation.commit_in_transaction, body, client_id=context.client_id)
        at = self._at(body.group_id)
        if isinstance(at, Error):
            return self._commit(body, request, lambda _: at)
        verdict = self._verifier.check_commit(body)
        if isinstance(verdict, Error):
            return self._commit(body, request, self._finder(verdict, context.version))
        return self._commit_when_verified(context.version, body, request, verdict)

    async def _commit_when_verified(
        self, version: int, body: Body, request: MakeCommit, verdict: Awaitable[Error]
    ) -> Response:
        answer = self._commit(body, request, self._finder(await verdict, version))
        return await answer if isinstance(answer, Awaitable) else answer

    def _finder(self, verdict: Error, version: int) -> Callable[[str], LedPartition | Error]:
        if verdict is Error.NONE:
            return self._at
        is_abortable = verdict is Error.INVALID_TXN_STATE and version >= translation.COMMIT_IS_ABORTABLE
        return lambda _: Error.TRANSACTION_ABORTABLE if is_abortable else verdict

    def _commit(
        self,
        body: Body,
        request: MakeCommit,
        find: Callable[[str], LedPartition | Error],
        *,
        accepted: int | None = None,
    ) -> Response | Awaitable[Response]:
        """`accepted` is the version for a hand-written answer without errors; None: kio encodes it."""
        known, answer = self._admitted(body, accepted)
        if not known:
            return answer(CommitAnswer(()))  # an empty commit creates no group
        at = find(body.group_id)
        if isinstance(at, LedPartition) and len(body.group_id.encode()) > TEXT_BYTES_MAX:
            at = Error.INVALID_GROUP_ID
        if isinstance(at, Error):
            return answer(CommitAnswer(tuple(PartitionError(o.topic, o.partition, at) for o in known)))
        return at.ask(functools.partial(request, known), answer)

    async def _commit_in_zookeeper(self, body: Body) -> Response:
        known, answer = self._admitted(body, None, merges=True)
        return answer(await self._in_zookeeper.commit(body.group_id, known))

    def _admitted(
        self, body: Body, accepted: int | None, *, merges: bool = False
    ) -> tuple[tuple[OffsetToCommit, ...], Callable[[CommitAnswer], Response]]:
        """The offsets of partitions that exist, and what makes the whole response of their answer."""
        asked = translation.offsets_to_commit(body)
        unknown = self._topics.unknown_among(asked)
        known = tuple(o for o in asked if (o.topic, o.partition) not in unknown) if unknown else asked

        def answer(given: CommitAnswer) -> Response:
            if unknown:
                judged = (p.error for p in given.partitions)  # a partition may occur twice, with a result each
                refused = Error.UNKNOWN_TOPIC_OR_PARTITION
                errors = [refused if (o.topic, o.partition) in unknown else next(judged) for o in asked]
            else:
                errors = [error for _, _, error in given.partitions]
            if accepted is not None and not any(errors) and all(topic.partitions for topic in body.topics):
                return Encoded(commit_messages.accepted(accepted, translation.partitions_of(body)))
            return translation.commit_answer(body, errors, self._topics.has_topic, merges=merges)

        return known, answer

    def fetch(self, context: RequestContext, body: Body) -> Plain | Awaitable[Plain]:
        if context.version == translation.IN_ZOOKEEPER:
            return self._fetch_from_zookeeper(body)
        if hasattr(body, "groups"):
            stable = body.require_stable
            return {"groups": [self._fetch_group(group, stable=stable) for group in body.groups]}
        wanted = translation.wanted(body.topics)
        at = self._partitions.at(body.group_id)
        if isinstance(at, LedPartition):
            stable = context.version >= translation.FETCH_KNOWS_UNSTABLE and body.require_stable
            offsets = at.machine.offsets.fetch(body.group_id, wanted, stable=stable)
            return {"error_code": int(Error.NONE), "topics": translation.fetched(body.topics, offsets)}
        if context.version < translation.FETCH_HAS_TOP_ERROR:
            nothing = [(topic, partition, None) for topic, partition in wanted or ()]
            return {"topics": translation.fetched(body.topics, nothing, at)}
        return {"error_code": int(at), "topics": []}

    async def _fetch_from_zookeeper(self, body: Body) -> Plain:
        """Each partition once, as Kafka answers this version."""
        wanted = dict.fromkeys(translation.wanted(body.topics) or (), Error.UNKNOWN_TOPIC_OR_PARTITION)
        known = [at for at in wanted if self._topics.has_partition(*at)]
        found = {**wanted, **await self._in_zookeeper.fetch(body.group_id, known)}
        return {"topics": translation.fetched(None, [(*at, got) for at, got in found.items()])}

    def _fetch_group(self, asked: Any, *, stable: bool) -> Plain:
        group_id, topics = asked.group_id, asked.topics
        at = self._partitions.at(group_id)
        if isinstance(at, LedPartition) and (group := at.machine.consumer.find(group_id)) is not None:
            member_id, epoch = getattr(asked, "member_id", None), getattr(asked, "member_epoch", -1)
            at = fetch_refusal(group, member_id, epoch) or at
        if isinstance(at, Error):
            return {"group_id": group_id, "topics": [], "error_code": int(at)}
        offsets = at.machine.offsets.fetch(group_id, translation.wanted(topics), stable=stable)
        return {"group_id": group_id, "topics": translation.fetched(topics, offsets), "error_code": int(Error.NONE)}

    def delete(self, context: RequestContext, body: Body) -> Plain | Awaitable[PlainResponse]:
        at = self._at(body.group_id)
        if isinstance(at, Error):
            return translation.offsets_not_deleted(at)
        request = translation.delete_offsets(body, 0)
        known = [self._topics.has_partition(*p) for p in request.partitions]

        def answer(given: DeleteOffsetsAnswer) -> Plain:
            if given.error is not Error.NONE:
                return translation.offsets_not_deleted(given.error)
            judged = (p.error for p in given.partitions)
            errors = [next(judged) if is_known else Error.UNKNOWN_TOPIC_OR_PARTITION for is_known in known]
            return translation.delete_offsets_answer(body, errors, self._topics.has_topic)

        partitions = tuple(p for p, is_known in zip(request.partitions, known, strict=True) if is_known)
        return at.ask(lambda token: dataclasses.replace(request, token=token, partitions=partitions), answer)


def _fresh_id(at: LedPartition, body: JoinBody, random: Random) -> str:
    """In a group of the `consumer` design, ids have another form."""
    if body.member_id:
        return ""
    return (fresh_base64_id if at.machine.consumer.in_use(body.group_id) else fresh_id)(random)


def _overlong(body: JoinBody, client_id: str) -> str | None:
    texts = {
        "group_id": body.group_id,
        "client_id": client_id,  # member ids begin with it
        "group_instance_id": body.instance_id,
        "protocol_type": body.protocol_type,
        **{f"protocol {i}": protocol.name for i, protocol in enumerate(body.protocols)},
    }
    return translation.overlong(texts, _ID_BYTES_MAX)


async def _settled(answer: Plain | Awaitable[PlainResponse]) -> PlainResponse:
    return answer if isinstance(answer, dict) else await answer
