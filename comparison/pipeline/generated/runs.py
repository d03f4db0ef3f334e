"""Generate runs of any size whose figures are known, to check and to time the pipeline.

In each round every partition goes to the next member, which delivers its records in polls of ten. Between two rounds
all partitions are released and claimed again; who releases also commits. A fixed fraction of the partitions has a fault
in each round: an owner that is *deaf*, so that it believes in its ownership and commits after its successor has begun;
records that no member receives; records that are delivered twice. `Faults` adds more.

All files are in order of time. What one member does in a round is rendered at once, because an event at a time takes
twice as long: a core writes more than half a million events a second.
"""

from __future__ import annotations

import random
from collections import defaultdict
from contextlib import ExitStack
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comparison.pipeline.generated.files import (
    GROUP,
    HERE,
    Boot,
    SyntheticFile,
    SyntheticFiles,
    claim_fields,
    group_fields,
    partitions_fields,
    topic_fields,
)
from comparison.pipeline.generated.truth import TOLERANCE_ACROSS_BOOTS_MS, TOLERANCE_MS, Truth

if TYPE_CHECKING:
    from pathlib import Path

POLL_RECORDS = 10
POLLS_A_ROUND = 20
POLL_MS = 50
PAUSE_MS = 100  #: from a release to the next claim
#: From a poll's request to its records; a zombie's come a little later.
_ANSWER_MS, _ZOMBIE_ANSWER_MS = 5, 7
_FAULT_SHARE = 0.05
#: The share of the zombies that commit an old offset.
_OLD_SHARE = 0.5
#: How long a deaf owner shares the partition with its successor: usually, and for a brief overlap.
_OVERLAP_MS, _BRIEF_MS = 400, 20
#: A process that dies does so this long before its round ends, after its last poll.
_DIES_BEFORE_MS = 20
_JOINS_MS = 5  #: from a round's end until a new member starts
_ROUND_MS = POLLS_A_ROUND * POLL_MS
_ROUND_RECORDS = POLLS_A_ROUND * POLL_RECORDS
#: By how much a zombie's old commit is behind.
_OLD_RECORDS = 5 * POLL_RECORDS


@dataclass(frozen=True, slots=True)
class Faults:
    """What goes wrong beside the faults that every run has; shares are from 0 to 1."""

    zombies: float = 0.0  #: share of the deaf owners that go on delivering beside their successors
    brief: float = 0.0  #: share of the deaf owners whose overlap is shorter than the tolerance between machines
    deaths: float = 0.0  #: share of the members in a round whose process is killed; a new one takes its place
    torn: int = 0  #: members whose file ends in a torn line
    foreign: int = 0  #: members on another boot, whose clock only the wall time relates to the others'


def write_synthetic(
    folder: Path,
    *,
    events_min: int,
    members: int = 4,
    partitions: int = 12,
    seed: int = 0,
    faults: Faults = Faults(),
) -> Truth:
    """Write a run of at least `events_min` events to `folder`/trace, and return its true figures.

    Raises ValueError for fewer than two members: nobody could take over.
    """
    if members < 2:
        raise ValueError(f"{members} members; a synthetic run needs two or more")
    with ExitStack() as opened:
        run = _SyntheticRun(SyntheticFiles(folder, opened, seed), members, partitions, seed, faults)
        run.begin()
        while run.events < events_min:
            run.round()
        run.end()
        return run.truth


def write_synthetic_runs(
    folder: Path,
    *,
    runs: int,
    events_min: int,
    members: int = 4,
    partitions: int = 12,
    seed: int = 0,
    faults: Faults = Faults(),
) -> list[Truth]:
    """Write `runs` runs to folders in `folder`, of at least `events_min` events in all; returns the figures of each."""
    return [
        write_synthetic(
            folder / f"run-{number:05}",
            events_min=-(-events_min // runs),
            members=members,
            partitions=partitions,
            seed=seed + number,
            faults=faults,
        )
        for number in range(runs)
    ]


@dataclass(slots=True, eq=False)
class _Member:
    """The process that is this member now."""

    name: str
    life: int
    file: SyntheticFile
    boot: Boot
    held: set[int] = field(default_factory=set)


@dataclass(slots=True)
class _Share:
    """One partition in one round: its owner, and what goes wrong with it."""

    partition: int
    owner: _Member
    start: int  #: the first record of the round
    redelivers: bool  #: the owner delivers the last poll of the round before again
    skipped: int | None  #: the poll that it leaves out
    zombie: _Deaf | None  #: the owner of the round before, if it goes on


@dataclass(frozen=True, slots=True)
class _Deaf:
    """An owner that does not notice the release of its partition."""

    owner: _Member
    overlap_ms: int
    delivers: bool
    commits_old: bool

    @property
    def polls(self) -> int:
        """How many polls it makes in the next round."""
        return self.overlap_ms // POLL_MS if self.delivers else 0


@dataclass(slots=True)
class _Log:
    """Where one partition stands."""

    end: int = 0
    committed: int = 0
    is_last_poll_delivered: bool = False
    deaf: _Deaf | None = None
    died_before_ms: int = 0  #: how long before the release its last owner died


class _SyntheticRun:
    """The files of the run, its current time, and the state of each partition."""

    def __init__(self, files: SyntheticFiles, members: int, partitions: int, seed: int, faults: Faults) -> None:
        self.truth = Truth(tolerance_ms=TOLERANCE_ACROSS_BOOTS_MS if faults.foreign else TOLERANCE_MS)
        self._now_ms = 0
        self._files = files
        self._random = random.Random(seed)
        self._faults = faults
        self._logs = [_Log() for _ in range(partitions)]
        self._runner = files.open("runner")
        self._observer = files.open("observer")
        self._members = []
        for number in range(members):
            boot = Boot("another", 5_000_000) if number < faults.foreign else HERE
            self._members.append(_Member(f"m{number}", 1, files.open(f"m{number}", boot), boot))

    @property
    def events(self) -> int:
        return self._files.events

    def begin(self) -> None:
        parameters = f'"members":{len(self._members)},"partitions":{len(self._logs)},"topics":1,"streams":1,"brokers":1'
        self._runner.add(0, "run_started", f'"parameters":{{{parameters}}}')
        self._runner.add(0, "stage_entered", '"stage":"steady"')
        for member in self._members:
            member.file.add(0, "member_started", f'"group":"{GROUP}","streams":1')

    def end(self) -> None:
        """Read the final offsets, some of them wrong, and end the run."""
        now, truth = self._now_ms, self.truth
        self._runner.add(now, "stage_entered", '"stage":"final"')
        for partition, log in enumerate(self._logs):
            if log.died_before_ms:
                truth.unowned(log.died_before_ms)
            committed, chance = log.committed, self._random.random()
            if chance < _FAULT_SHARE and log.committed:
                committed -= POLL_RECORDS
                truth.final_behind += 1
            elif chance > 1 - _FAULT_SHARE:
                committed = log.end + POLL_RECORDS
                truth.final_beyond += 1
            offsets = f'"committed":{committed},"end":{log.end}'
            self._runner.add(now + 200, "final_offset", f"{group_fields(partition)},{offsets}")
            truth.final_read += 1
        self._runner.add(now + 300, "run_ended", '"outcome":"complete"')
        for number, member in enumerate(self._members):
            if number < self._faults.torn:
                member.file.tear(now)
                truth.torn += 1
            else:
                member.file.close(now + 300)
        for file in (self._runner, self._observer):
            file.close(now + 300)
        truth.events, truth.files = self._files.events, self._files.opened

    def round(self) -> None:
        """Claim everything, deliver, release; all partitions at the same moments."""
        before, begin = self._now_ms, self._now_ms + PAUSE_MS
        shares = [self._share(partition) for partition in range(len(self._logs))]
        dying = [
            member for member in self._members if self._faults.deaths and self._random.random() < self._faults.deaths
        ]
        for share in shares:
            self._count(share)
        self._observe_claims(shares, begin)
        owned, zombies = defaultdict(list), defaultdict(list)
        for share in shares:
            owned[share.owner.file].append(share)
            if share.zombie is not None:
                zombies[share.zombie.owner.file].append((share, share.zombie))
        for member in self._members:
            self._rebalance(member, before, begin)
            self._claim(member, owned[member.file], begin)
            self._deliver(member, owned[member.file], zombies[member.file], begin)
        self._acknowledge(shares, begin)
        self._now_ms = end = begin + _ROUND_MS
        for share in shares:
            self._release(share, end, dying)
        for member in dying:
            self._die(member, end)
        for file in (self._runner, self._observer, *(member.file for member in self._members)):
            file.flush()
        self.truth.rounds += 1

    @property
    def _is_empty(self) -> bool:
        """Whether all members are new, and the last ones gone."""
        return not any(member.file.seq for member in self._members)

    def _share(self, partition: int) -> _Share:
        log, chance = self._logs[partition], self._random.random
        return _Share(
            partition,
            self._members[(partition + self.truth.rounds) % len(self._members)],
            log.end,
            redelivers=log.end > 0 and chance() < _FAULT_SHARE,
            skipped=self._random.randrange(POLLS_A_ROUND) if chance() < _FAULT_SHARE else None,
            zombie=log.deaf,
        )

    def _count(self, share: _Share) -> None:
        """Add what happens to the partition from its claim on, and move its log on."""
        truth, log, zombie = self.truth, self._logs[share.partition], share.zombie
        truth.unowned_authority_ms += PAUSE_MS - (_JOINS_MS if self._is_empty else 0)
        polls = zombie.polls if zombie is not None else 0
        if self._is_empty:
            truth.unowned(PAUSE_MS - _JOINS_MS)
        elif zombie is None:
            truth.unowned(PAUSE_MS + log.died_before_ms)
        else:
            truth.double_owned(zombie.overlap_ms)
            self._count_zombie(share, zombie)
        if share.redelivers:
            # If the poll was left out the first time, it was not lost after all.
            truth.duplicates += POLL_RECORDS if log.is_last_poll_delivered else 0
            truth.delivered += 0 if log.is_last_poll_delivered else POLL_RECORDS
            truth.lost -= 0 if log.is_last_poll_delivered else POLL_RECORDS
        nobody = share.skipped is not None and share.skipped >= polls
        truth.lost += POLL_RECORDS if nobody else 0
        truth.delivered += _ROUND_RECORDS - (POLL_RECORDS if nobody else 0)
        log.is_last_poll_delivered = share.skipped != POLLS_A_ROUND - 1
        log.end += _ROUND_RECORDS

    def _count_zombie(self, share: _Share, zombie: _Deaf) -> None:
        """The zombie commits once, and may deliver the records that its successor delivers."""
        truth, log = self.truth, self._logs[share.partition]
        truth.commits += 1
        truth.stale_writes += 1
        if zombie.commits_old:
            truth.moved_back += 1
            truth.moved_back_records += _OLD_RECORDS
            log.committed -= _OLD_RECORDS
        if zombie.delivers:
            twice = zombie.polls - (share.skipped is not None and share.skipped < zombie.polls)
            truth.duplicates += twice * POLL_RECORDS
            truth.stale_deliveries += zombie.polls * POLL_RECORDS
            first_ms = 0 if share.redelivers else _ANSWER_MS + (POLL_MS if share.skipped == 0 else 0)
            truth.two_delivering((zombie.polls - 1) * POLL_MS + _ZOMBIE_ANSWER_MS - first_ms)

    def _observe_claims(self, shares: list[_Share], begin: int) -> None:
        """What ZooKeeper's transaction log shows of the claims, and of the zombies' commits."""
        for share in shares:
            owner = f'"owner":"{share.owner.file.process}-0","epoch":{begin}'
            self._observer.add(begin, "authority_named", f"{group_fields(share.partition)},{owner}")
        for share in shares:
            if share.zombie is not None:
                self._commit(share.partition, share.zombie.owner.file, begin + 1)

    def _commit(self, partition: int, by: SyntheticFile, at_ms: int) -> None:
        offset = f'"offset":{self._logs[partition].committed},"by":"{by.process}","epoch":{at_ms}'
        self._observer.add(at_ms, "offset_written", f"{group_fields(partition)},{offset}")

    def _rebalance(self, member: _Member, before: int, begin: int) -> None:
        file = member.file
        if not file.seq:
            file.add(before + _JOINS_MS, "member_started", f'"group":"{GROUP}","streams":1')
        file.add(before + 10, "rebalance_started", '"trigger":"children"')
        file.add(before + 20, "phase_entered", '"phase":"join","attempt":1')
        file.add(begin, "rebalance_ended", '"outcome":"ok"')
        self.truth.rebalances += 1

    def _claim(self, member: _Member, shares: list[_Share], begin: int) -> None:
        file = member.file
        for share in shares:
            file.add(begin, "zk_op", f'"op":"create",{claim_fields(share.partition)},"step":"R11","zxid":{begin}')
            member.held.add(share.partition)
            file.add(begin, "partitions_assigned", partitions_fields(share.partition, member.held))
            file.add(begin, "position_started", f'{topic_fields(share.partition)},"offset":{share.start}')
            if share.redelivers:
                file.delivered(begin, share.partition, share.start - POLL_RECORDS, POLL_RECORDS)

    def _deliver(self, member: _Member, mine: list[_Share], zombie_of: list[tuple[_Share, _Deaf]], begin: int) -> None:
        """The member's polls, in order of time, also those of partitions that it does not know to have lost."""
        file = member.file
        for poll in range(POLLS_A_ROUND):
            at_ms = begin + poll * POLL_MS
            for share, zombie in zombie_of:
                if (poll - 1) * POLL_MS < zombie.overlap_ms <= poll * POLL_MS:
                    member.held.discard(share.partition)
                    lost = partitions_fields(share.partition, member.held)
                    file.add(begin + zombie.overlap_ms, "partitions_lost", lost)
            file.fetched(at_ms, len(mine))
            for share in mine:
                if share.skipped != poll:
                    file.delivered(at_ms + _ANSWER_MS, share.partition, share.start + poll * POLL_RECORDS, POLL_RECORDS)
            for share, zombie in zombie_of:
                if poll < zombie.polls:
                    first = share.start + poll * POLL_RECORDS
                    file.delivered(at_ms + _ZOMBIE_ANSWER_MS, share.partition, first, POLL_RECORDS)

    def _acknowledge(self, shares: list[_Share], begin: int) -> None:
        for poll in range(POLLS_A_ROUND):
            for share in shares:
                first = share.start + poll * POLL_RECORDS
                self._runner.acked(begin + poll * POLL_MS, share.partition, first, POLL_RECORDS)

    def _release(self, share: _Share, end: int, dying: list[_Member]) -> None:
        """Commit and release; a deaf owner does not notice, and a dead one does nothing any more."""
        partition, log, chance = share.partition, self._logs[share.partition], self._random.random
        file, reason = share.owner.file, "session"
        log.deaf, log.died_before_ms = None, 0
        if share.owner in dying:
            log.died_before_ms = _DIES_BEFORE_MS
        else:
            log.committed, reason = log.end, "delete"
            self._commit(partition, file, end)
            self.truth.commits += 1
            file.add(end, "zk_op", f'"op":"delete",{claim_fields(partition)},"step":"R5","zxid":{end}')
            if chance() < _FAULT_SHARE:
                log.deaf = self._deaf(share.owner)
            else:
                share.owner.held.discard(partition)
                file.add(end, "partitions_revoked", partitions_fields(partition, share.owner.held))
        owner = f'"owner":"{file.process}-0","epoch":{end}'
        self._observer.add(end, "authority_cleared", f'{group_fields(partition)},{owner},"reason":"{reason}"')

    def _deaf(self, owner: _Member) -> _Deaf:
        chance = self._random.random
        is_brief = chance() < self._faults.brief
        return _Deaf(
            owner,
            _BRIEF_MS if is_brief else _OVERLAP_MS,
            delivers=chance() < self._faults.zombies and not is_brief,
            commits_old=chance() < _OLD_SHARE,
        )

    def _die(self, member: _Member, end: int) -> None:
        """Kill the member's process, and start another one in its place."""
        at_ms = end - _DIES_BEFORE_MS
        target = f'"target":"{member.file.process}","how":"kill","code":-9'
        self._runner.add(at_ms, "process_ended", target)
        member.file.kill()
        member.life += 1
        member.held.clear()
        member.file = self._files.open(f"{member.name}.{member.life}", member.boot)
        self.truth.deaths += 1
