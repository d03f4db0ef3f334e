"""What fields of events are called in files of columns, where their names are words of SQL that would need quotes."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

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
