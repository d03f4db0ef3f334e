"""Encodes the machine's answers to JoinGroup and SyncGroup (`kernel.wire.group_answers`).

The answers to thousands of members differ little: their common part is encoded once, and a member's entry in the
leader's list is cached in its profile, in the version that leaders last used.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from kernel.broker.server.handlers import Encoded
from kernel.wire.group_answers import JOIN_FORMS, SYNC_FORMS

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from coordinator.groups.answers import JoinAnswer, SyncAnswer
    from coordinator.groups.errors import Error
    from coordinator.groups.records import Profile

#: Entries encoded in one piece.
ENTRIES_PER_PIECE = 500


class JoinAnswers:
    """Encodes answers of one version."""

    def __init__(self, version: int) -> None:
        self._version = version
        self._form = JOIN_FORMS[version]
        self._common: tuple[object, ...] = ()  # of the last answer
        self._head = b""

    def __call__(self, answer: JoinAnswer) -> Encoded:
        common = answer[1:7]  # all but the member id and the list
        if common != self._common:
            self._head = self._form.head(
                error=answer.error,
                generation=answer.generation,
                protocol_type=answer.protocol_type,
                protocol_name=answer.protocol_name or None,  # also for '', as JoinGroupResponse in Kafka
                leader=answer.leader,
                skip_assignment=answer.skip_assignment,
            )
            self._common = common
        if not answer.members:
            return Encoded(self._form.whole(self._head, answer.member_id))
        return Encoded(self._form.whole(self._head, answer.member_id, [self._entry(m) for m in answer.members]))

    def ahead(self, answer: JoinAnswer) -> Iterator[None]:
        """Encode the list's entries in pieces, so that encoding the answer is short."""
        for at in range(0, len(answer.members), ENTRIES_PER_PIECE):
            for profile in answer.members[at : at + ENTRIES_PER_PIECE]:
                self._entry(profile)
            yield

    def _entry(self, profile: Profile) -> bytes:
        listed = profile.listed
        if listed is not None and listed[0] == self._version:
            return listed[1]
        entry = self._form.member(profile.member_id, profile.instance_id, profile.subscription)
        profile.listed = (self._version, entry)
        return entry


class SyncAnswers:
    """Encodes answers of one version."""

    def __init__(self, version: int) -> None:
        self._form = SYNC_FORMS[version]
        self._common: tuple[Error, str | None, str | None] | None = None
        self._head = b""

    def __call__(self, answer: SyncAnswer) -> Encoded:
        common = answer[:3]
        if common != self._common:
            error, protocol_type, protocol_name = common
            self._head = self._form.head(error=error, protocol_type=protocol_type, protocol_name=protocol_name)
            self._common = common
        return Encoded(self._form.whole(self._head, answer.assignment))


#: By served version.
JOIN_ANSWERS: Mapping[int, JoinAnswers] = {version: JoinAnswers(version) for version in JOIN_FORMS}
SYNC_ANSWERS: Mapping[int, SyncAnswers] = {version: SyncAnswers(version) for version in SYNC_FORMS}


def entries_ahead(translate: object, answer: JoinAnswer) -> Iterator[None]:
    """`JoinAnswers.ahead` if `translate` is a `JoinAnswers`: a leader's list may be long."""
    if isinstance(translate, JoinAnswers):
        yield from translate.ahead(answer)
