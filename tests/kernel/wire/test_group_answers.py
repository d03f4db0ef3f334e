"""Responses written by our own encoder equal kio's, in every version that is served."""

from __future__ import annotations

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.wire.codec import encode_response
from kernel.wire.errors import ErrorCode
from kernel.wire.group_answers import JOIN_FORMS, SYNC_FORMS
from kernel.wire.versions import SERVED, Api

INT32 = st.integers(-(2**31), 2**31 - 1)
#: Lengths on both sides of where a varint grows, and of what the old versions can express.
LENGTHS = st.sampled_from([0, 1, 125, 126, 127, 128, 16_382, 16_383, 32_767])
TEXTS = st.text(max_size=8) | LENGTHS.map(lambda n: "x" * n) | st.sampled_from(["\0", "ü" * 63, "ü" * 64, "𝄞"])
BLOBS = st.binary(max_size=8) | (LENGTHS | st.just(2_097_151)).map(bytes)
ERRORS = st.sampled_from([int(code) for code in ErrorCode])
MEMBERS = st.lists(st.tuples(TEXTS, st.none() | TEXTS, BLOBS), max_size=3)
COUNTS = [0, 1, 2, 126, 127, 128, 16_382, 16_383]

joins = pytest.mark.parametrize("version", JOIN_FORMS)
syncs = pytest.mark.parametrize("version", SYNC_FORMS)


def by_kio(api: Api, version: int, body: dict[str, object]) -> bytes:
    """kio's encoding, after size and correlation id."""
    return encode_response(api, version, 7, body)[8:]


@joins
@given(
    error=ERRORS,
    generation=INT32,
    protocol_type=st.none() | TEXTS,
    protocol_name=st.none() | TEXTS,
    leader=TEXTS,
    skip_assignment=st.booleans(),
    member_id=TEXTS,
    members=MEMBERS,
)
def test_a_join_answer_is_what_kio_writes(version, member_id, members, **fields):
    form = JOIN_FORMS[version]
    error = fields.pop("error")
    generation = fields.pop("generation")
    written = form.whole(
        form.head(error=error, generation=generation, **fields), member_id, [form.member(*entry) for entry in members]
    )
    names = ("member_id", "group_instance_id", "metadata")
    assert written == by_kio(
        Api.JoinGroup,
        version,
        {
            "error_code": error,
            "generation_id": generation,
            "member_id": member_id,
            "members": [dict(zip(names, entry, strict=True)) for entry in members],
            **fields,
        },
    )


@joins
@pytest.mark.parametrize("count", COUNTS)
def test_a_join_answer_lists_any_number_of_members_as_kio_does(version, count):
    form = JOIN_FORMS[version]
    head = form.head(error=0, generation=1, protocol_type="consumer", protocol_name="range", leader="m")
    entries = [form.member("m", None, b"s")] * count
    written = by_kio(
        Api.JoinGroup,
        version,
        {
            "generation_id": 1,
            "protocol_type": "consumer",
            "protocol_name": "range",
            "leader": "m",
            "member_id": "m",
            "members": [{"member_id": "m", "metadata": b"s"}] * count,
        },
    )
    assert form.whole(head, "m", entries) == written


@syncs
@given(error=ERRORS, protocol_type=st.none() | TEXTS, protocol_name=st.none() | TEXTS, assignment=BLOBS)
def test_a_sync_answer_is_what_kio_writes(version, error, protocol_type, protocol_name, assignment):
    form = SYNC_FORMS[version]
    head = form.head(error=error, protocol_type=protocol_type, protocol_name=protocol_name)
    assert form.whole(head, assignment) == by_kio(
        Api.SyncGroup,
        version,
        {"error_code": error, "protocol_type": protocol_type, "protocol_name": protocol_name, "assignment": assignment},
    )


@joins
def test_a_member_id_of_any_length_is_repeated_where_the_version_can_say_it(version):
    form = JOIN_FORMS[version]
    long_id = "x" * 40_000  # a refusal repeats the member's id
    head = form.head(error=24, generation=-1, protocol_type=None, protocol_name=None, leader="")
    if version < 6:
        with pytest.raises(struct.error):
            form.whole(head, long_id)
    else:
        body = {"error_code": 24, "generation_id": -1, "protocol_name": None, "leader": "", "member_id": long_id}
        assert form.whole(head, long_id) == by_kio(Api.JoinGroup, version, body)


def test_every_served_version_has_a_form():
    assert (min(JOIN_FORMS), max(JOIN_FORMS)) == SERVED[Api.JoinGroup]
    assert (min(SYNC_FORMS), max(SYNC_FORMS)) == SERVED[Api.SyncGroup]
