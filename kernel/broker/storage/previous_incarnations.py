"""The files of a broker's previous incarnations: at its start, damaged ones are reported and empty ones removed.

Only the broker that holds their identity (`kernel.broker.cluster.identity`) does so: no process still writes them. A
file with records stays, however old: partitions' chains of segments refer to it (`chain.py`), and copying its records
into a new file at every start would be too expensive.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING
from uuid import UUID

from kernel.broker.storage.epochs import Epoch, PartitionEpochs, claim_of
from kernel.broker.storage.errors import StorageFailed
from kernel.broker.storage.files import FOLDER, SUFFIX, faults_named, open_reader
from kernel.broker.storage.wal import damage

if TYPE_CHECKING:
    from pathlib import Path

log = logging.getLogger(__name__)


def clean_up_previous_incarnations(data_dir: Path, node_id: int) -> None:
    """Blocks. A killed broker leaves a write-ahead log of at most 8 MB, which is read in a fifth of a second."""
    for path in sorted((data_dir / FOLDER).glob(f"broker-{node_id}-*{SUFFIX}")):
        try:
            _report_damage(path)
            if _holds_nothing(data_dir, path):
                for name in (path, claim_of(path), *_beside(path)):
                    name.unlink(missing_ok=True)
        except (OSError, StorageFailed) as error:
            log.error("cannot check %s: %s", path, error)  # noqa: TRY400 - the message says it all


def check_never_led(data_dir: Path, topic_id: UUID, partition: int, publications: Path) -> None:
    """Raise StorageFailed if a broker has led the partition although no epoch is published.

    Then `publications`, which says which records count, was removed, and the log would begin at 0 again.
    """
    for path in sorted((data_dir / FOLDER).glob(f"*{SUFFIX}")):
        reader = open_reader(path)
        try:
            query = "SELECT 1 FROM term WHERE topic_id = ? AND partition = ? LIMIT 1"
            found = reader.execute(query, (topic_id.hex, partition)).fetchone()
        finally:
            reader.close()
        if found is not None:
            raise StorageFailed(
                f"{publications} is missing or empty, but {path} was written for partition {partition} of topic"
                f" {topic_id}: without it the records that count are unknown. Put the folder back, or delete the topic."
            )


def _report_damage(path: Path) -> None:
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists():
        return
    found = damage(wal.read_bytes())
    if found is not None:
        log.error(
            "%s is damaged at frame %d of %d: %d transactions from there on are lost, with the records and committed"
            " offsets in them, which may have been acknowledged. The log continues before them and reuses the offsets."
            " If you have an intact copy of the file, stop this broker immediately and put the copy in its place.",
            *(wal, found.frame, found.frames, found.commits),
        )


def _holds_nothing(data_dir: Path, path: Path) -> bool:
    """Whether no publication names it, and it has no rows that a chain or a successor could refer to."""
    with faults_named(f"look into {path}"):
        reader = open_reader(path)
        try:
            for table in ("batch", "pair"):
                if reader.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone() is not None:
                    return False
            terms = reader.execute("SELECT topic_id, partition, leader_epoch, attempt FROM term").fetchall()
        finally:
            reader.close()
    return not any(
        (PartitionEpochs(data_dir, UUID(hex=topic_id), partition).folder / str(Epoch(*epoch))).exists()
        for topic_id, partition, *epoch in terms
    )


def _beside(path: Path) -> list[Path]:
    return [path.with_name(f"{path.name}{suffix}") for suffix in ("-wal", "-shm")]
