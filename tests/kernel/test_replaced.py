"""`kernel.values.replaced`, as `dataclasses.replace`."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, field, replace

import pytest

from kernel.values import replaced


@dataclass(frozen=True, slots=True, kw_only=True)
class Base:
    name: str
    numbers: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True, kw_only=True)
class More(Base):
    count: int = 0


def test_replaced_is_as_replace() -> None:
    more = More(name="a", numbers=[1], count=2)

    changed = replaced(more, count=3, name="b")

    assert changed == replace(more, count=3, name="b") == More(name="b", numbers=[1], count=3)
    assert type(changed) is More
    assert changed.numbers is more.numbers
    assert more == More(name="a", numbers=[1], count=2)
    with pytest.raises(FrozenInstanceError):
        changed.count = 4  # type: ignore[misc]


def test_field_that_there_is_not_is_refused() -> None:
    with pytest.raises(KeyError, match="size"):
        replaced(Base(name="a"), size=1)
