"""What the queries say of segments that a test made."""

from __future__ import annotations

from collections.abc import Sequence

from comparison.pipeline.gold.cover import Overlaps, Segments, segment_table
from comparison.pipeline.gold.partitions import PartitionTables
from comparison.pipeline.gold.run import summed
from comparison.pipeline.measured import Coverage
from comparison.pipeline.silver.context import Window
from comparison.pipeline.silver.naming import Key
from comparison.pipeline.stages import NO_TABLES
from comparison.results.keys import BELIEVED
from tests.support.trace.traces import traced_run


def coverage_of(
    segments: Segments, overlaps: Overlaps, windows: Sequence[Window], keys: Sequence[Key], view: str = BELIEVED
) -> dict[tuple[int, str], Coverage]:
    tables = NO_TABLES._replace(segments=segment_table(view, segments, overlaps, keys))
    return summed(traced_run(), windows, PartitionTables(*tables)).coverage
