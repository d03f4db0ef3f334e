"""Giving up the oldest records of a log: its start moves up, durably, before their rows go. On the writer's thread.

A log begins where its chain does (`chain.py`), or where the term that leads it begins when that has no chain. So the
new begin is one update of that term's row, and a successor inherits it with the rest. The order makes it safe:

1. commit the term's row with the shorter chain;
2. look at the publications: when nobody has taken over by then, whoever does later reads this row, so that nobody
   builds on records below the new start;
3. delete rows below it, in our own file only. Those in files of former incarnations stay until their topic goes: no
   file has two writers. When this fails, rows are left that nobody reads.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kernel.broker.storage.chain import to_json
from kernel.broker.storage.errors import StorageFailed
from kernel.broker.storage.files import Transaction, faults_named

if TYPE_CHECKING:
    import sqlite3

    from kernel.broker.storage.jobs import Trim

log = logging.getLogger(__name__)


def trim(writer: sqlite3.Connection, file: str, job: Trim) -> None:
    """Perform `job`; raises what a write to its term would be refused with, and nothing has changed then."""
    term = job.term
    if term.closed is not None:
        raise term.refusal()
    doing = f"give up records of {term.topic_partition}"
    with faults_named(doing), Transaction(writer):
        writer.execute(
            "UPDATE term SET start = ?, chain = ? WHERE term = ?", (job.start, to_json(job.chain), term.term)
        )
    with faults_named(f"look for a newer epoch of {term.topic_partition}"):
        term.check_fence()
    starts = {segment.term: segment.start for segment in job.chain if segment.file == file}
    own = {segment.term: starts.get(segment.term, segment.end) for segment in term.chain if segment.file == file}
    try:
        with faults_named(doing), Transaction(writer):
            writer.executemany(
                "DELETE FROM batch WHERE term = ? AND last_offset < ?", [*own.items(), (term.term, job.start)]
            )
    except StorageFailed as failure:
        log.warning("rows that nobody reads are left: %s", failure)
