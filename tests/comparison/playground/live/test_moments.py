"""A step stops at what a group does, and says it."""

import string

import pytest

from comparison.playground.live.moments import WORDS, told
from kernel.trace.events import KINDS

#: Of an observer, which no trace has.
_OBSERVED = {"zk_waiting"}
_OF_ALL = {"process", "member"}


@pytest.mark.parametrize("kind", sorted(WORDS.keys() - _OBSERVED))
def test_the_words_name_fields_that_the_event_has(kind: str) -> None:
    named = {field for _, field, _, _ in string.Formatter().parse(WORDS[kind]) if field}
    assert named <= {*KINDS[kind].fields, *_OF_ALL}


@pytest.mark.parametrize(
    ("event", "expected"),
    [
        ({"kind": "zk_op", "process": "m2", "op": "getData", "path": "/a"}, "m2: getData /a"),
        ({"kind": "request_answered", "process": "m1", "api": "JoinGroup"}, "m1: JoinGroup is answered"),
        ({"kind": "request_answered", "process": "m1", "api": "Fetch"}, ""),
        ({"kind": "records_delivered", "process": "m1"}, ""),
        ({"kind": "zk_waiting", "process": "m3", "op": "", "path": ""}, ""),
        ({"kind": "zk_waiting", "process": "m3", "op": "create", "path": "/b"}, "m3 waits before create /b"),
        ({"kind": "of a later version"}, ""),
        ({"kind": "phase_entered", "process": "m3"}, "m3 enters the phase ?"),
    ],
)
def test_only_what_a_group_does_is_told(event: dict[str, object], expected: str) -> None:
    assert told(event) == expected
