"""Remove unknown tagged fields from a message before kio reads it.

KIP-482 lets readers skip unknown tags, but kio 0.6 raises `KeyError`, for headers and bodies. The codec therefore
calls `without_unknown_tags` after such an error; practically no message needs it. It copies the message along its
schema and rewrites tag sections with the known tags only. Every step consumes at least one byte, so the size of the
message bounds the work; `TAGS_MAX` bounds it further, since a frame of 100 MiB has room for 50 million empty tags.
"""

from __future__ import annotations

from typing import Any

from kernel.wire.errors import MalformedFrame
from kernel.wire.schema import FIXED_BYTES, Field, fields_of, is_flexible

#: The most tagged fields in a message: one for each element that `kernel.wire.bounds` allows.
TAGS_MAX = 200_000
_ONE_BYTE = [bytes((value,)) for value in range(0x80)]


def without_unknown_tags(entity: type[Any], body: bytes) -> bytes:
    """Copy `body`, an encoded `entity`, without unknown tagged fields; bytes after its end are kept.

    Raises `MalformedFrame` if the bytes do not follow the schema.
    """
    if not is_flexible(entity):
        return body
    walk = _Walk(body)
    walk.copy_entity(entity)
    return bytes(walk.out) + body[walk.at :]


def skip_tags(data: bytes, at: int) -> int:
    """The offset after a tag section; for headers, which have no known tags."""
    walk = _Walk(data, at)
    for _ in range(walk.read_tag_count()):
        walk.read_uvarint()
        walk.take(walk.read_uvarint())
    return walk.at


class _Walk:
    """A position in the message, and the copy up to it."""

    def __init__(self, data: bytes, at: int = 0, tags_left: int = TAGS_MAX) -> None:
        self.data = data
        self.at = at
        self.tags_left = tags_left
        self.out = bytearray()

    def take(self, size: int) -> bytes:
        end = self.at + size
        if size < 0 or end > len(self.data):
            raise MalformedFrame(f"a field of {size} bytes at offset {self.at} ends outside the message")
        taken = self.data[self.at : end]
        self.at = end
        return taken

    def read_uvarint(self) -> int:
        value = 0
        for shift in range(0, 35, 7):
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            if byte < 0x80:
                return value
        raise MalformedFrame(f"a variable-length integer before offset {self.at} has more than five bytes")

    def read_tag_count(self) -> int:
        count = self.read_uvarint()
        if count > self.tags_left:
            raise MalformedFrame(f"{count} tagged fields at offset {self.at}; {self.tags_left} more are allowed")
        self.tags_left -= count
        return count

    def copy_entity(self, entity: type[Any]) -> None:
        fields = fields_of(entity)
        for field in fields:
            if field.tag is None:
                self._copy_field(field)
        self._copy_tags({field.tag: field for field in fields if field.tag is not None})

    def _copy_field(self, field: Field) -> None:
        if not field.is_array:
            self._copy_value(field)
            return
        length = self.read_uvarint()
        self.out += uvarint(length)
        for _ in range(length - 1):
            self._copy_value(field)

    def _copy_value(self, field: Field) -> None:
        if field.nested is not None:
            # A nullable struct begins with a byte: 1 if present, -1 for null. Elements of arrays have no such byte.
            if field.nullable and not field.is_array and field.tag is None:
                marker = self.take(1)
                self.out += marker
                if marker == b"\xff":
                    return
            self.copy_entity(field.nested)
        elif field.kind in FIXED_BYTES:
            self.out += self.take(FIXED_BYTES[field.kind])
        else:
            size = self.read_uvarint()
            self.out += uvarint(size)
            self.out += self.take(max(size - 1, 0))

    def _copy_tags(self, known: dict[int, Field]) -> None:
        kept = bytearray()
        count = 0
        for _ in range(self.read_tag_count()):
            tag = self.read_uvarint()
            content = self.take(self.read_uvarint())
            field = known.get(tag)
            if field is None:
                continue
            inner = _Walk(content, tags_left=self.tags_left)
            inner._copy_field(field)
            self.tags_left = inner.tags_left
            if inner.at != len(content):
                raise MalformedFrame(f"tagged field {tag} has {len(content)} bytes instead of {inner.at}")
            kept += uvarint(tag) + uvarint(len(inner.out)) + inner.out
            count += 1
        self.out += uvarint(count) + kept


def uvarint(value: int) -> bytes:
    """Encode an unsigned variable-length integer."""
    if value < 0x80:
        return _ONE_BYTE[value]
    out = bytearray()
    while value >= 0x80:
        out.append(value & 0x7F | 0x80)
        value >>= 7
    out.append(value)
    return bytes(out)
