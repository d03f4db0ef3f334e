"""Unknown tagged fields are skipped at any place (KIP-482); the rest of the message is unchanged."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kio.serial import entity_reader

from kernel.wire import codec
from kernel.wire.errors import MalformedFrame
from kernel.wire.schema import Field, fields_of, is_flexible
from kernel.wire.tags import uvarint, without_unknown_tags
from kernel.wire.versions import Api
from tests.support.properties import examples
from tests.support.wire.messages import SERVED_VERSIONS, entity_of, mappings

FLEXIBLE = [
    (api, version, request)
    for api, version in SERVED_VERSIONS
    for request in (True, False)
    if is_flexible(entity_of(api, version, request=request))
]


class Tagger:
    """Rewrites a kio entity with an unknown tagged field, 4242, in each of its tag sections."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0
        self.sections = 0

    def take(self, size: int) -> bytes:
        self.at += size
        return self.data[self.at - size : self.at]

    def uvarint(self) -> int:
        value = shift = 0
        while True:
            byte = self.take(1)[0]
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    def entity(self, entity: type[Any]) -> bytes:
        fields = fields_of(entity)
        out = b"".join(self.field(field) for field in fields if field.tag is None)
        known = {field.tag: field for field in fields}
        count = self.uvarint()
        tags = b""
        for _ in range(count):
            tag = self.uvarint()
            inner = Tagger(self.take(self.uvarint()))
            content = inner.field(known[tag])
            self.sections += inner.sections
            tags += uvarint(tag) + uvarint(len(content)) + content
        self.sections += 1
        return out + uvarint(count + 1) + tags + uvarint(4242) + uvarint(3) + b"new"

    def field(self, field: Field) -> bytes:
        if not field.is_array:
            return self.value(field)
        length = self.uvarint()
        return uvarint(length) + b"".join(self.value(field) for _ in range(length - 1))

    def value(self, field: Field) -> bytes:
        if field.nested is not None:
            if field.nullable and not field.is_array and field.tag is None:
                marker = self.take(1)
                return marker if marker == b"\xff" else marker + self.entity(field.nested)
            return self.entity(field.nested)
        sizes = {"int8": 1, "bool": 1, "int64": 8, "datetime_i64": 8, "timedelta_i64": 8, "float64": 8, "uuid": 16}
        sizes |= dict.fromkeys(("int16", "uint16", "error_code"), 2) | dict.fromkeys(("int32", "timedelta_i32"), 4)
        if field.kind in sizes:
            return self.take(sizes[field.kind])
        size = self.uvarint()
        return uvarint(size) + self.take(max(size - 1, 0))


@settings(max_examples=examples(200), deadline=None)
@given(st.data())
def test_message_with_foreign_tags_everywhere_decodes_as_without(data: st.DataObject) -> None:
    api, version, request = data.draw(st.sampled_from(FLEXIBLE))
    entity = entity_of(api, version, request=request)
    body = data.draw(mappings(entity))
    if request:
        plain = codec.encode_request(api, version, 7, None, body)[4:]
        head, content = plain[:11], plain[11:]  # key, version, correlation id, null client id, no tags
        expected = codec.decode_request(plain).body
    else:
        plain = codec.encode_response(api, version, 7, body)[4:]
        size = 4 if api is Api.ApiVersions else 5
        head, content = plain[:size], plain[size:]
        expected = codec.decode_response(api, version, plain)[1]
    tagged = Tagger(content).entity(entity)
    with pytest.raises(KeyError):  # the reason for tags.py: when kio learns to skip them, it can go
        entity_reader(entity)(tagged, 0)
    assert without_unknown_tags(entity, tagged) == content
    frame = head + tagged
    got = codec.decode_request(frame).body if request else codec.decode_response(api, version, frame)[1]
    assert got == expected


def test_foreign_tag_in_the_header_is_skipped() -> None:
    frame = codec.encode_request(Api.Heartbeat, 4, 7, None, {"group_id": "g", "member_id": "m"})[4:]
    assert frame[10:11] == b"\0"
    tagged = frame[:10] + b"\x02\x01\x02ab\x07\0" + frame[11:]
    assert codec.decode_request(tagged) == codec.decode_request(frame)


@pytest.mark.parametrize(
    "tags",
    [
        b"\x01",  # one tag, and nothing
        b"\x01\x63\x05ab",  # five bytes of which two are there
        b"\x01\x63\xff\xff\xff\xff\xff\xff",  # a size of more than five bytes
        b"\xff\xff\xff\xff\x0f\x63\0",  # four billion tags
    ],
)
def test_tag_section_that_is_cut_short_is_refused(tags: bytes) -> None:
    frame = codec.encode_request(Api.Heartbeat, 4, 7, None, {"group_id": "g", "member_id": "m"})[4:]
    with pytest.raises(MalformedFrame):
        codec.decode_request(frame[:-1] + tags)
    with pytest.raises(MalformedFrame):
        codec.decode_request(frame[:10] + tags)


def test_trailing_bytes_after_foreign_tags_are_refused() -> None:
    frame = codec.encode_request(Api.Heartbeat, 4, 7, None, {"group_id": "g", "member_id": "m"})[4:]
    with pytest.raises(MalformedFrame, match="2 bytes after the end"):
        codec.decode_request(frame[:-1] + b"\x01\x63\x01a" + b"xx")
