"""What one stage hands to the next comes back as it was, in columns that Spark can select."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pytest
from numpy.typing import NDArray

from comparison.pipeline.typed_rows import batch_of, column, schema_of, values_of


class Colour(Enum):
    RED = "red"


class Flat(msgspec.Struct, frozen=True, kw_only=True):
    name: str
    at_ns: int
    until_ns: int | None = None


class Other(msgspec.Struct, frozen=True, kw_only=True):
    what: str


class Numbered(NamedTuple):
    topic: str
    partition: int


@dataclass(frozen=True)
class Nested:
    places: tuple[Numbered, ...]
    colour: Colour


@dataclass
class Row:
    number: int
    flat: list[Flat]
    places: tuple[Numbered, ...]
    either: tuple[Flat | Other, ...]
    nested: Nested
    by_place: dict[tuple[str, int], str]
    folder: Path
    parsed: dict[str, Any]
    perhaps: Flat | None = None
    table: pa.Table = field(default_factory=lambda: pa.table({"n": [1, 2]}))


ROW = Row(
    number=1,
    flat=[Flat(name="a", at_ns=1 << 62), Flat(name="ä", at_ns=-1, until_ns=2)],
    places=(Numbered("t", 0),),
    either=(Other(what="x"), Flat(name="b", at_ns=0)),
    nested=Nested((Numbered("t", 1), Numbered("u", 2)), Colour.RED),
    by_place={("t", 0): "m1", ("t", 1): "m2"},
    folder=Path("/runs/a"),
    parsed={"deep": [1, {"x": None}]},
)


def test_values_come_back_as_they_were() -> None:
    assert values_of(Row, batch_of(Row, [ROW, ROW])) == [ROW, ROW]


def test_numbers_of_any_shape_come_back() -> None:
    numbers, ranges = column(NDArray[np.int64]), np.array([[1, 5], [3, 9]], dtype=np.int64)
    assert (numbers.unpack(numbers.pack(ranges)) == ranges).all()


def test_lists_of_flat_objects_are_texts_and_other_values_are_columns() -> None:
    schema = schema_of(Row)
    assert {name: schema.field(name).type for name in ("number", "flat", "places", "table")} == {
        "number": pa.int64(),
        "flat": pa.string(),
        "places": pa.string(),
        "table": pa.binary(),
    }
    assert pa.types.is_struct(schema.field("nested").type)


def test_type_without_a_column_is_refused() -> None:
    with pytest.raises(TypeError, match="no column holds values of <class 'object'>"):
        column(object)
