"""Deletes the oldest records of a log: moves its start up durably before deleting rows. Runs on the writer's thread.

A log begins where its chain does (`chain.py`), or, without a chain, where the current term does. So moving the start
is one update of that term's row, which a successor inherits with the rest. The order makes it safe:

1. commit the term's row with the shorter chain;
2. check the publications: if no broker has taken over by then, a later successor reads this row, so no broker
   builds on records below the new start;
3. delete the rows below it, in our own file only. Rows in files of previous incarnations stay until the topic is
   deleted: no file has two writers. If this step fails, unused rows are left behind.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from kernel.broker.storage.chain import to_json
from kernel.broker.storage.errors import StorageFailed
from kernel.broker.storage.files import SqliteTransaction, faults_named

if TYPE_CHECKING:
    import sqlite3

    from kernel.broker.storage.jobs import Trim

log = logging.getLogger(__name__)


def trim(writer: sqlite3.Connection, file: str, job: Trim) -> None:
    """Perform `job`. Raises what a write to its term would raise; nothing has changed then."""
    term = job.term
    if term.closed is not None:
        raise term.refusal()
    doing = f"delete old records of {term.topic_partition}"
    with faults_named(doing), SqliteTransaction(writer):
        writer.execute(
            "UPDATE term SET start = ?, chain = ? WHERE term = ?", (job.start, to_json(job.chain), term.term)
        )
    with faults_named(f"check for a newer epoch of {term.topic_partition}"):
        term.check_fence()
    starts = {segment.term: segment.start for segment in job.chain if segment.file == file}
    own = {segment.term: starts.get(segment.term, segment.end) for segment in term.chain if segment.file == file}
    try:
        with faults_named(doing), SqliteTransaction(writer):
            writer.executemany(
                "DELETE FROM batch WHERE term = ? AND last_offset < ?", [*own.items(), (term.term, job.start)]
            )
    except StorageFailed as failure:
        log.warning("deleted records still take up space: %s", failure)
