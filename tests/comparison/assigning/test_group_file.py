"""Groups in TOML files, and complaints with the lines that they are about."""

from __future__ import annotations

from pathlib import Path

import pytest

from comparison.assigning.group import GroupMember, Join
from comparison.assigning.group_file import parse_plan, read_plan
from kernel.errors import ConfigurationError, EnvironmentFault, SeveralErrors

GOOD = """\
strategies = ["range", "sticky"]
then = ["leave billing-1", "join late:orders"]

[topics]
orders = 48
payments = 6

[[members]]
name = "billing"
count = 3
topics = ["orders"]
streams = 2
instance = "b"

[[members]]
name = "audit"
"""


def complaints(text: str) -> list[str]:
    with pytest.raises(SeveralErrors) as refused:
        parse_plan(text, "g.toml")
    return list(refused.value.texts)


def test_file_is_a_group_with_its_steps() -> None:
    plan = parse_plan(GOOD, "g.toml")
    assert dict(plan.group.sizes) == {"orders": 48, "payments": 6}
    assert plan.group.members == (
        *(GroupMember(name=f"billing-{n}", topics=("orders",), instance_id=f"b-{n}", streams=2) for n in range(3)),
        GroupMember(name="audit", topics=("orders", "payments")),
    )
    assert [step.text for step in plan.steps] == ["leave billing-1", "join late:orders"]
    assert plan.steps[1].change == Join((GroupMember(name="late", topics=("orders",)),))
    assert plan.strategies == ("range", "sticky")


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("then =", "than =", "line 2, column 1: unknown key 'than'. Did you mean 'then'?"),
        ('"sticky"]', '"stiky"]', "line 1, column 24: unknown strategy 'stiky'. Did you mean 'sticky'?"),
        ('"sticky"]', "3]", "line 1, column 1: strategies is not a list of texts"),
        ("leave billing-1", "leave billing-7", "line 2, column 9: unknown member"),
        ("join late", "jion late", "line 2, column 28: unknown step 'jion'"),
        ("orders = 48", "orders = 48000", "line 5, column 1: orders is 48000. Use a whole number between 0 and 20000"),
        ("orders = 48", "orders = true", "line 5, column 1: orders is True. Use a whole number"),
        ("payments = 6", '"pay ments" = 6', "line 6, column 1: 'pay ments' is not a topic's name"),
        ("count = 3", "count = 0", "line 10, column 1: count is 0. Use a whole number between 1 and 2000"),
        ("count = 3", "counts = 3", "line 10, column 1: unknown key 'counts'. Did you mean 'count'?"),
        ('["orders"]', '["oders"]', "line 11, column 11: unknown topic 'oders'. Did you mean 'orders'?"),
        ("streams = 2", "streams = 101", "line 12, column 1: streams is 101. Use a whole number between 1 and 100"),
        ('instance = "b"', "instance = 7", "line 13, column 1: instance is 7. Use a text"),
        ('name = "audit"', "", "line 15, column 1: name is missing"),
        ('name = "audit"', 'name = "a b"', "line 16, column 1: 'a b' is not the name of a member"),
        ('name = "audit"', 'name = "billing-2"', "line 15, column 1: member 'billing-2' is in the group already"),
        ('name = "audit"', "name = ", "line 16, column 8: not TOML: Invalid value"),
    ],
)
def test_mistake_is_told_with_its_line(old: str, new: str, complaint: str) -> None:
    assert old in GOOD
    text = GOOD.replace(old, new)
    found = complaints(text)
    place, _, what = complaint.partition(": ")
    where = f" (g.toml, {place})"
    assert any(where in each and each.replace(where, "").startswith(what) for each in found), found


def test_all_mistakes_are_told_in_the_order_of_the_lines() -> None:
    found = complaints(GOOD.replace("count = 3", "count = 0").replace("payments = 6", "payments = -1"))
    assert [each[each.index("(") : each.index(")")] for each in found] == [
        "(g.toml, line 6, column 1",
        "(g.toml, line 10, column 1",
    ]


def test_file_without_members_or_topics_is_told_what_to_write() -> None:
    assert [each.partition(" (")[0] for each in complaints("")] == ["[topics] is missing", "[[members]] is missing"]


def test_group_that_is_too_large_is_refused() -> None:
    (complaint,) = complaints(GOOD.replace("count = 3", "count = 2000"))
    assert complaint == "2001 members are too many (g.toml). `assign` takes at most 2000"


def test_file_that_cannot_be_read_is_refused(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentFault, match=r"no such file or folder .*gone.toml"):
        read_plan(tmp_path / "gone.toml")
    (tmp_path / "binary.toml").write_bytes(b"\xff")
    with pytest.raises(ConfigurationError, match="not UTF-8"):
        read_plan(tmp_path / "binary.toml")
    (tmp_path / "long.toml").write_bytes(b"#" * 1_000_001)
    with pytest.raises(ConfigurationError, match="more than 1000000 bytes"):
        read_plan(tmp_path / "long.toml")
