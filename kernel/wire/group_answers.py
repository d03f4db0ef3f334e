"""JoinGroup and SyncGroup responses encoded by hand, for groups of thousands of members.

A rebalance answers every member twice, and sends the leader a list of all members. The common part of the responses
of a generation is encoded once (`head`). A member's entry in the leader's list is encoded once too, and kept by the
caller (`member`). The bytes are exactly kio's, at a tenth of the cost.

    form = JOIN_FORMS[version]
    head = form.head(error=0, generation=3, protocol_type="consumer", protocol_name="range", leader="m-1")
    form.whole(head, "m-1", [form.member("m-1", None, b"..."), ...])

Responses begin after the correlation id, as `kernel.broker.server.handlers.Encoded` requires. None becomes "" in
versions that do not allow null, as in `kernel.wire.writing`. Strings of versions before KIP-482 have at most 32,767
bytes; longer ones raise `struct.error`.
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from kernel.wire.tags import uvarint
from kernel.wire.versions import Api, served_versions

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

_SHORT, _INT = struct.Struct(">h"), struct.Struct(">i")
_ERROR_AND_GENERATION = struct.Struct(">hi")
_NOT_THROTTLED = b"\0\0\0\0"
_NO_TAGS = b"\0"
_ONE_BYTE = [bytes((number,)) for number in range(128)]


def _text(text: str) -> bytes:
    encoded = text.encode()
    return _SHORT.pack(len(encoded)) + encoded


def _nullable(text: str | None) -> bytes:
    return b"\xff\xff" if text is None else _text(text)


def _blob(data: bytes) -> bytes:
    return _INT.pack(len(data)) + data


def _compact_text(text: str) -> bytes:
    encoded = text.encode()
    return _length(len(encoded)) + encoded


def _compact_nullable(text: str | None) -> bytes:
    return _NO_TAGS if text is None else _compact_text(text)


def _compact_blob(data: bytes) -> bytes:
    return _length(len(data)) + data


def _length(number: int) -> bytes:
    """A compact length: the length plus one, because zero means null."""
    return _ONE_BYTE[number + 1] if number < 127 else uvarint(number + 1)


class _Form:
    """The encodings of one version."""

    def __init__(self, version: int, *, flexible_from: int) -> None:
        flexible = version >= flexible_from
        self._version = version
        self._text: Callable[[str], bytes] = _compact_text if flexible else _text
        self._nullable: Callable[[str | None], bytes] = _compact_nullable if flexible else _nullable
        self._blob: Callable[[bytes], bytes] = _compact_blob if flexible else _blob
        self._count: Callable[[int], bytes] = _length if flexible else _INT.pack
        self._tags = _NO_TAGS if flexible else b""


class JoinForm(_Form):
    """JoinGroup responses of one version."""

    def __init__(self, version: int) -> None:
        super().__init__(version, flexible_from=6)
        self._none = self._count(0) + self._tags

    def head(
        self,
        *,
        error: int,
        generation: int,
        protocol_type: str | None,
        protocol_name: str | None,
        leader: str,
        skip_assignment: bool = False,
    ) -> bytes:
        """The part before the member id."""
        version = self._version
        parts = [self._tags, _NOT_THROTTLED if version >= 2 else b"", _ERROR_AND_GENERATION.pack(error, generation)]
        if version >= 7:
            parts += [self._nullable(protocol_type), self._nullable(protocol_name)]
        else:
            parts.append(self._text(protocol_name or ""))
        parts.append(self._text(leader))
        if version >= 9:
            parts.append(b"\1" if skip_assignment else b"\0")
        return b"".join(parts)

    def member(self, member_id: str, instance_id: str | None, metadata: bytes) -> bytes:
        """A member's entry in the leader's list."""
        instance = self._nullable(instance_id) if self._version >= 5 else b""
        return self._text(member_id) + instance + self._blob(metadata) + self._tags

    def whole(self, head: bytes, member_id: str, members: Sequence[bytes] = ()) -> bytes:
        """The response to `member_id`."""
        if not members:
            return head + self._text(member_id) + self._none
        return b"".join((head, self._text(member_id), self._count(len(members)), *members, self._tags))


class SyncForm(_Form):
    """SyncGroup responses of one version."""

    def __init__(self, version: int) -> None:
        super().__init__(version, flexible_from=4)

    def head(self, *, error: int, protocol_type: str | None, protocol_name: str | None) -> bytes:
        """The part before the assignment."""
        parts = [self._tags, _NOT_THROTTLED if self._version >= 1 else b"", _SHORT.pack(error)]
        if self._version >= 5:
            parts += [self._nullable(protocol_type), self._nullable(protocol_name)]
        return b"".join(parts)

    def whole(self, head: bytes, assignment: bytes) -> bytes:
        """The response to the member with this assignment."""
        return head + self._blob(assignment) + self._tags


#: {version: form}, for all served versions.
JOIN_FORMS: Mapping[int, JoinForm] = {version: JoinForm(version) for version in served_versions(Api.JoinGroup)}
SYNC_FORMS: Mapping[int, SyncForm] = {version: SyncForm(version) for version in served_versions(Api.SyncGroup)}
