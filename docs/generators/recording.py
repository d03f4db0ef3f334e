"""Recordings: runs and guided tours as archives of their traces, beside the docs; the site makes pages of them.

An archive has one run folder: `command.json`, each run's `run.json` and its traces, and of a tour `tour.json`, which
says when each step of it was taken. The words of a tour are not recorded: they are those of the playground.
"""

from __future__ import annotations

import io
import tarfile
from typing import TYPE_CHECKING, Any

import msgspec

from comparison.playground.web.files import page_files
from comparison.replay.captions import Caption, Seen
from docs.generators.pages import DOCS

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

RECORDED = DOCS / "recorded"
SUFFIX = ".tar.xz"
TOUR_FILE = "tour.json"
#: The reports, by the commands that they were recorded with.
REPORTS: Mapping[str, tuple[str, ...]] = {
    "split-brain-report": ("run", "split-brain", "pause", "--design", "zookeeper,eager", "--seed", "1"),
    "rolling-restart-report": (
        *("run", "rolling-restart", "--design", "all"),
        *("--members", "3", "--partitions", "6", "--seed", "1"),
    ),
    "herd-report": ("run", "herd", "--design", "zookeeper,eager", "--seed", "1"),
}
_KEPT = ("command.json", "run.json", TOUR_FILE)


class Step(msgspec.Struct, frozen=True):
    """A step of a tour, as the playground has it."""

    say: str
    look: str
    part: str
    label: str = ""
    do: list[dict[str, Any]] = []
    seen: list[dict[str, Any]] = []


class Tour(msgspec.Struct, frozen=True):
    """A tour, as the playground has it."""

    id: str
    title: str
    about: str
    designs: list[str]
    steps: list[Step]

    @property
    def acts(self) -> list[dict[str, Any]]:
        """What is done and waited for: all but the words. A recording of others is no recording of this tour."""
        return [
            {"do": step.do, "seen": [{key: each[key] for key in each if key != "say"} for each in step.seen]}
            for step in self.steps
        ]


class Taken(msgspec.Struct, frozen=True):
    """When a step was taken, in milliseconds of the game."""

    at_ms: int  #: it was shown
    did_ms: int | None = None  #: what it does was done
    seen_ms: list[int] = []  #: what it waits for came


class Recorded(msgspec.Struct, frozen=True):
    """How a tour was taken."""

    tour: str
    designs: list[str]
    member: str  #: {m} of its words
    acts: list[dict[str, Any]]
    steps: list[Taken]


def tours() -> Mapping[str, Tour]:
    """The playground's tours, by their ids."""
    found = msgspec.json.decode(page_files()["tours.json"].content, type=list[Tour])
    return {each.id: each for each in found}


def archive_of(name: str) -> Path:
    """Where the recording of this report or tour is."""
    return RECORDED / f"{name}{SUFFIX}"


def pack(folder: Path, archive: Path) -> None:
    """Keep a run folder's traces, and what says how they came about; the same bytes from the same files."""
    kept = sorted(each for each in folder.rglob("*") if each.name in _KEPT or each.parent.name == "trace")
    with tarfile.open(archive, "w:xz", preset=9) as tar:
        for each in kept:
            content = each.read_bytes()
            entry = tarfile.TarInfo(str(each.relative_to(folder.parent)))
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))


def unpack(archive: Path, folder: Path) -> Path:
    """Unpack a recording into a folder that has no other one; the run folder."""
    with tarfile.open(archive) as tar:
        tar.extractall(folder, filter="data")
    (found,) = folder.iterdir()
    return found


def recorded_tour(folder: Path) -> Recorded | None:
    """How the tour in a run folder was taken; None for a folder without one."""
    path = folder / TOUR_FILE
    return msgspec.json.decode(path.read_bytes(), type=Recorded) if path.exists() else None


def captions(tour: Tour, recorded: Recorded) -> list[Caption]:
    """The words of a tour, at the moments at which it was taken. Times count from the first thing that it did."""
    first_ms = next(each.did_ms for each in recorded.steps if each.did_ms is not None)

    def words(text: str) -> str:
        return text.replace("{m}", recorded.member)

    return [
        Caption(
            at=(taken.at_ms - first_ms) / 1000,
            title=f"{tour.title}: {number} of {len(tour.steps)}",
            text=words(step.say),
            look=words(step.look),
            part=step.part,
            seen=tuple(
                Seen(at=(ms - first_ms) / 1000, text=words(each["say"]))
                for ms, each in zip(taken.seen_ms, step.seen, strict=True)
            ),
        )
        for number, (step, taken) in enumerate(zip(tour.steps, recorded.steps, strict=True), start=1)
    ]
