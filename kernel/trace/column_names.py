"""Fields of events in files of columns: their types, and their names where a word of SQL would need quotes."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

import pyarrow as pa

from kernel.trace.events import Type

if TYPE_CHECKING:
    from collections.abc import Mapping

FILE_NAMES: Mapping[str, str] = MappingProxyType(
    {
        "all": "all_partitions",
        "at": "reading",
        "by": "by_member",
        "end": "end_offset",
        "group": "group_id",
        "offset": "record_offset",
    }
)
ARROW_TYPES: Mapping[Type, pa.DataType] = MappingProxyType(
    {
        Type.TEXT: pa.string(),
        Type.INT: pa.int64(),
        Type.FLAG: pa.bool_(),
        Type.PARTITIONS: pa.list_(pa.struct([("topic", pa.string()), ("partition", pa.int64())])),
        Type.DETAIL: pa.string(),  # as JSON
    }
)
