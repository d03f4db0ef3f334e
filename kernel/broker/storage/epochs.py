"""Publishes who leads a partition, durably, to every broker that shares the data directory.

Each partition has a folder, each term a file in it, named `<leader epoch>.<attempt>` after what orders terms. The
attempt counts the terms of one leader epoch: a broker that restarts before the controller notices is still the leader
at the epoch that its previous incarnation used, and must fence that one too. A publication is a hard link to the
incarnation's *claim*, a synced file that names its database: linking fails if the name is taken, and a link is never
half-written.

The newest publication is never removed while the topic exists, so checking for a higher one takes one listing.
"""

from __future__ import annotations

import json
import os
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING
from uuid import UUID

from kernel.broker.storage.errors import Fenced
from kernel.decimals import decimal
from kernel.platform.syncing import synced

if TYPE_CHECKING:
    from pathlib import Path

FOLDER = "epochs"
#: The file with the topic's name, next to the folders of its partitions.
_NAME = "topic"


def topic_folder(data_dir: Path, topic_id: UUID) -> Path:
    """The folder of a topic's publications; without it no broker can write to the topic."""
    return data_dir / FOLDER / topic_id.hex


def name_topic(data_dir: Path, topic_id: UUID, name: str) -> None:
    """Store the topic's name with its id: tools that do not know ids may rewrite the topic in ZooKeeper."""
    path = topic_folder(data_dir, topic_id) / _NAME
    if path.exists():
        return
    temporary = path.with_name(f"{_NAME}.{os.getpid()}-{threading.get_ident()}")
    temporary.write_text(name, encoding="utf-8")
    synced(temporary)
    temporary.replace(path)


def topic_named(data_dir: Path, name: str) -> UUID | None:
    """The id under which a topic of that name was last led here; None if never, or if it was deleted."""
    found = [path for path in (data_dir / FOLDER).glob(f"*/{_NAME}") if path.read_text(encoding="utf-8") == name]
    newest = max(found, key=lambda path: path.stat().st_mtime, default=None)
    return None if newest is None else UUID(hex=newest.parent.name)


@dataclass(frozen=True, slots=True, order=True)
class Epoch:
    """Orders the terms of one partition."""

    leader_epoch: int
    attempt: int

    def __str__(self) -> str:
        return f"{self.leader_epoch:010d}.{self.attempt:06d}"

    @classmethod
    def parsed(cls, name: str) -> Epoch | None:
        """None if `name` is not a publication."""
        first, _, second = name.partition(".")
        leader_epoch, attempt = decimal(first), decimal(second)
        return None if leader_epoch is None or attempt is None else cls(leader_epoch, attempt)


class PartitionEpochs:
    """The publications of one partition. Methods raise OSError if the folder is not accessible."""

    def __init__(self, data_dir: Path, topic_id: UUID, partition: int) -> None:
        self._parent = topic_folder(data_dir, topic_id)
        self._folder = self._parent / str(partition)

    @property
    def folder(self) -> Path:
        return self._folder

    def published(self) -> list[Epoch]:
        """Ascending; empty without a folder: never led, or the topic was deleted."""
        try:
            names = os.listdir(self._folder)
        except FileNotFoundError:
            return []
        return sorted(epoch for epoch in map(Epoch.parsed, names) if epoch is not None)

    def is_newest(self, epoch: Epoch) -> bool:
        """The fence: check it after a commit and before its acknowledgement."""
        published = self.published()
        return bool(published) and published[-1] == epoch

    def publish(self, leader_epoch: int, claim: Path) -> Epoch:
        """Publish the next attempt of `leader_epoch` for the incarnation of `claim`; durable on return.

        Raises Fenced if a higher leader epoch is published, even while this runs.
        """
        self._make_folder()
        epoch = self._link(leader_epoch, claim)
        synced(self._folder)
        if not self.is_newest(epoch):
            raise Fenced(f"epoch {epoch} was overtaken by {self.published()[-1:]} in {self._folder}")
        return epoch

    def file_of(self, epoch: Epoch) -> str:
        """The incarnation file of a publication. Raises FileNotFoundError if it has been pruned."""
        file = json.loads((self._folder / str(epoch)).read_bytes())["file"]
        assert isinstance(file, str), f"{self._folder / str(epoch)} does not name a file"
        return file

    def prune_below(self, epoch: Epoch) -> None:
        """Remove older publications. Only for the term of `epoch`, once its own chain is committed."""
        for older in self.published():
            if older < epoch:
                (self._folder / str(older)).unlink(missing_ok=True)

    def _make_folder(self) -> None:
        if self._folder.is_dir():
            return
        self._folder.mkdir(parents=True, exist_ok=True)
        synced(self._parent, self._parent.parent)

    def _link(self, leader_epoch: int, claim: Path) -> Epoch:
        while True:
            newest = max(self.published(), default=Epoch(-1, 0))
            if newest.leader_epoch > leader_epoch:
                raise Fenced(f"leader epoch {leader_epoch} is behind {newest} in {self._folder}")
            attempt = newest.attempt + 1 if newest.leader_epoch == leader_epoch else 0
            epoch = Epoch(leader_epoch, attempt)
            try:
                os.link(claim, self._folder / str(epoch))
            except FileExistsError:
                continue
            return epoch


def make_claim(database: Path) -> None:
    """Create the file that an incarnation's publications link to. Raises FileExistsError."""
    claim = claim_of(database)
    with claim.open("x", encoding="utf-8") as file:
        json.dump({"file": database.name}, file)
    synced(claim, claim.parent)


def claim_of(database: Path) -> Path:
    return database.with_suffix(".claim")
