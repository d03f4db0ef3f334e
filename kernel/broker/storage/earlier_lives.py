"""The files of a broker's earlier lives, when it starts: damaged ones are reported, those that hold nothing removed.

Both only by the broker whose files they are, which holds their identity (`kernel.broker.identity`): nobody writes them
any more. A file with records stays, however old: partitions' chains of segments refer to it (`chain.py`), and copying
its records into a new one would cost what they are, at every start.
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


def look_after_earlier_lives(data_dir: Path, node_id: int) -> None:
    """Blocks: a log of 8 MB, which is all that a killed broker leaves, is read in a fifth of a second."""
    for path in sorted((data_dir / FOLDER).glob(f"broker-{node_id}-*{SUFFIX}")):
        try:
            _report_damage(path)
            if _holds_nothing(data_dir, path):
                for name in (path, claim_of(path), *_beside(path)):
                    name.unlink(missing_ok=True)
        except (OSError, StorageFailed) as error:
            log.error("%s cannot be looked at: %s", path, error)  # noqa: TRY400 - the message says it all


def check_never_led(data_dir: Path, topic_id: UUID, partition: int, publications: Path) -> None:
    """Raises StorageFailed when somebody has led the partition, though nothing of that is published.

    Then `publications` was removed, which says which of the records count: the log would begin at 0 again.
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
                f" {topic_id}: without it nobody knows which records count. Put the folder back, or delete the topic."
            )


def _report_damage(path: Path) -> None:
    wal = path.with_name(f"{path.name}-wal")
    if not wal.exists():
        return
    found = damage(wal.read_bytes())
    if found is not None:
        log.error(
            "%s is damaged at frame %d of %d: %d transactions at and behind it are lost, with the records and offsets"
            " committed in them, which may have been acknowledged. The log goes on before them, and their offsets are"
            " given out again. With a sound copy of the file, stop this broker at once and put the copy in its place.",
            *(wal, found.frame, found.frames, found.commits),
        )


def _holds_nothing(data_dir: Path, path: Path) -> bool:
    """No publication names it, and it has no rows that a chain or a successor could refer to."""
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
