"""What holds for every group of the server design, whatever its members, ZooKeeper, the log and the brokers do.

Members obey, lose an answer, or crash; ids are seen late; writes fail or are held back; coordinators are replaced at
any moment, some without noticing: those go on as zombies, whose writes the storage refuses.
"""

from __future__ import annotations

from functools import partial
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from coordinator.groups.errors import Error
from coordinator.groups.machine import Machine
from coordinator.groups.offsets.committed_offsets import CommitWrite
from coordinator.groups.records import ServerRecord
from coordinator.groups.server.requests import Await
from coordinator.groups.server.rounds import GenerationWrite, StartWrite
from coordinator.protocol.server.commands import AwaitCommand, Command
from coordinator.service.record_codec import decode_all
from tests.support.groups.server import GROUP, REBALANCE_TIMEOUT_MS, Player, Question, Served
from tests.support.properties import examples

NAMES = st.sampled_from(["a", "b", "c"])
TOPICS = st.sampled_from([("t",), ("u",), ("t", "u")])


class Watchful(Served):
    """Checks every answer when it is given."""

    def __post_init__(self) -> None:
        self.owners: dict[tuple[int, str, int], str] = {}
        self.askers: dict[int, str] = {}
        self.generations: dict[int, ServerRecord] = {}
        self.members: dict[int, set[str]] = {}  # {generation: members}, of all that were stored
        super().__post_init__()

    def stored(self) -> ServerRecord | None:
        found = [value for _, value in decode_all(self.log.items()) if isinstance(value, ServerRecord)]
        return found[0] if found else None

    def _perform(self, outcome: Any) -> None:
        for token, answer in outcome.replies:
            if getattr(answer, "command", None) is Command.START:
                self._started(self.askers[token], answer)
        super()._perform(outcome)

    def _write(self, write: Any, error: Error | None) -> None:
        if error is None and isinstance(write, CommitWrite):
            record = self.stored()
            assert record is not None, "a commit to a group without a generation was stored"
            assert write.request.generation == record.generation, "a commit was stored after its generation"
        if error is None and isinstance(write, GenerationWrite | StartWrite):
            self.members[write.record.generation] = {member.member_id for member in write.record.members}
        super()._write(write, error)

    def request(self, make: Any) -> Question:
        def noted(token: int) -> Any:
            request = make(token)
            if isinstance(request, Await):
                self.askers[token] = request.asked.member_id
            return request

        return super().request(noted)

    def _started(self, member_id: str, answer: Any) -> None:
        record = self.stored()
        assert record is not None, "started before anything was stored"
        assert answer.generation == record.generation, "started in a generation that is not the stored one"
        (mine,) = (member.partitions for member in record.members if member.member_id == member_id)
        assert mine == tuple((part.topic, part.partition) for part in answer.partitions)
        group = self.machine.server.groups[GROUP]
        for other, player in self.players.items():
            if other == member_id or not player.runs or player.generation == answer.generation:
                continue
            # It runs an old generation, so it was dropped or its id is gone, now or in a round since. A successor only
            # knows which members that round left out.
            since = range(player.generation + 1, answer.generation)
            left_out = any(other not in self.members[generation] for generation in since)
            assert left_out or not group.is_eligible(other)
        for part in answer.partitions:
            owner = self.owners.setdefault((answer.generation, part.topic, part.partition), member_id)
            assert owner == member_id, "two members were started on one partition in one generation"
            assert part.offset == self.committed().get(f"{part.topic}-{part.partition}", -1)


class ServerGroupUnderFire(RuleBasedStateMachine):
    """One group, three members, two topics."""

    def __init__(self) -> None:
        super().__init__()
        self.world = Watchful(sizes={"t": 3, "u": 2}, strategy="sticky")
        self.zombies: list[Machine] = []
        self.accepted: dict[str, int] = {}
        self.commits: list[tuple[Question, str, int]] = []
        self.offset = 0

    # -- members ------------------------------------------------------------------------------------------------------

    @rule(who=NAMES, topics=TOPICS)
    def register(self, who: str, topics: tuple[str, ...]) -> None:
        self.world.register(who, topics=topics)

    @rule(who=NAMES)
    def unregister(self, who: str) -> None:
        if who in self.world.ids:
            self.world.unregister(who)

    @rule(who=NAMES)
    def change_data_unseen(self, who: str) -> None:
        """Like register for an existing id, but no watch fires."""
        if who in self.world.ids:
            self.world.ids[who] = ("u",)

    @rule(who=NAMES, wait_ms=st.sampled_from([0, 100, 60_000]))
    def obey(self, who: str, wait_ms: int) -> None:
        self.world.player(who).obey()
        self.world.ask(who, wait_ms=wait_ms)

    @rule(who=st.lists(NAMES, min_size=1, max_size=3, unique=True))
    def settle(self, who: list[str]) -> None:
        self.world.settle(*who)

    @rule(who=NAMES)
    def lose_the_answer(self, who: str) -> None:
        self.world.player(who).question = None
        self.world.ask(who)

    @rule(who=NAMES)
    def crash(self, who: str) -> None:
        """Crash and restart under the same id, whose znode may still exist."""
        self.world.players[who] = Player()

    @rule(who=NAMES, late=st.integers(0, 2), tp=st.sampled_from(["t-0", "t-2", "u-1"]))
    def commit(self, who: str, late: int, tp: str) -> None:
        self.offset += 1
        generation = max(self.world.player(who).generation - late, -1)
        in_force = self.world.stored()
        question = self.world.commit(who, {tp: self.offset}, generation=generation)
        if question.answer is not None and self.world.errors(question)[tp] != "NONE":
            return
        assert in_force is not None, "a commit to a group without a generation was accepted"
        assert in_force.generation == generation, "a commit of an old generation was accepted"
        topic, number = tp.split("-")
        owned = {m.member_id: m.partitions for m in in_force.members}.get(who, ())
        assert (topic, int(number)) in owned, "a commit was accepted from a member that does not own the partition"
        self.commits.append((question, tp, self.offset))

    # -- the world ----------------------------------------------------------------------------------------------------

    @rule(blind=st.booleans())
    def see_or_not(self, blind: bool) -> None:
        self.world.blind = blind
        self.world.see()

    @rule(topic=st.sampled_from(["t", "u", "v"]))
    def grow(self, topic: str) -> None:
        if self.world.sizes.get(topic, 0) < 5:
            self.world.grow(topic, self.world.sizes.get(topic, 0) + 1)

    @rule(ms=st.sampled_from([1, 100, REBALANCE_TIMEOUT_MS, 60_000]))
    def wait(self, ms: int) -> None:
        self.world.pass_ms(ms)

    @rule()
    def hold_writes(self) -> None:
        self.world.holding = True

    @rule(error=st.sampled_from([None, None, Error.COORDINATOR_NOT_AVAILABLE]))
    def land_writes(self, error: Error | None) -> None:
        self.world.write_all(error)
        self._settle_commits()

    @rule(lands=st.booleans(), strategy=st.sampled_from(["sticky", "sticky", "range"]))
    def fail_over(self, lands: bool, strategy: str) -> None:
        if lands:
            self.world.write_all()
        self._settle_commits()
        self.zombies.append(self.world.machine)
        before = self.world.stored()
        self.world.reload(strategy=strategy)
        self.commits.clear()
        if self.world.blind:
            assert self.world.stored() == before, "nothing is decided before the ids have been read"
        assert {tp: self.world.committed().get(tp) for tp in self.accepted} == self.accepted

    @rule(who=NAMES, stopped=st.booleans())
    def ask_a_zombie(self, who: str, stopped: bool) -> None:
        """It may answer anything, but must not start a member."""
        if not self.zombies:
            return
        zombie, player = self.zombies[-1], self.world.player(who)
        asked = AwaitCommand(
            group_id=GROUP,
            member_id=who,
            generation=player.generation,
            stopped=player.generation if stopped else player.stopped,
            topics=self.world.ids.get(who, ("t",)),
            wait_ms=100,
        )
        outcomes = [
            zombie.handle(Await(token=-1, asked=asked), self.world.now),
            zombie.step(partial(zombie.server.seen, GROUP, self.world.ids), self.world.now),
            zombie.step(zombie.server.topics_changed, self.world.now),
        ]
        for outcome in outcomes:
            assert all(getattr(answer, "command", None) is not Command.START for _, answer in outcome.replies)
            now = self.world.now
            outcomes += [zombie.step(partial(write.not_stored, Error.NOT_COORDINATOR), now) for write in outcome.writes]

    def _settle_commits(self) -> None:
        for question, tp, offset in self.commits:
            if question.answer is not None and self.world.errors(question)[tp] == "NONE":
                self.accepted[tp] = offset
        self.commits = [commit for commit in self.commits if commit[0].answer is None]

    # -- what holds ---------------------------------------------------------------------------------------------------

    @invariant()
    def generations_only_grow_and_never_change(self) -> None:
        record = self.world.stored()
        if record is None:
            assert not self.world.generations
            return
        assert record.generation >= max(self.world.generations, default=0)
        assert self.world.generations.setdefault(record.generation, record) == record

    @invariant()
    def accepted_commits_are_there(self) -> None:
        self._settle_commits()
        assert {tp: self.world.committed().get(tp) for tp in self.accepted} == self.accepted

    def teardown(self) -> None:
        """Once nothing more happens the round ends: every registered member runs, and every partition is owned."""
        world = self.world
        world.blind = False
        world.see()
        world.write_all()
        for _ in range(4):
            world.settle("a", "b", "c")
            world.pass_ms(REBALANCE_TIMEOUT_MS)
        record = world.stored()
        running = {who: player for who, player in world.players.items() if player.runs}
        assert running.keys() == world.ids.keys()
        if record is None:
            assert not world.ids
            return
        assert world.state == ("Stable" if world.ids else "Empty")
        assert {player.generation for player in running.values()} <= {record.generation}
        owned = [tp for player in running.values() for tp in player.owned]
        wanted = {(topic, n) for topics in world.ids.values() for topic in topics for n in range(world.sizes[topic])}
        assert sorted(owned) == sorted(wanted)


ServerGroupUnderFire.TestCase.settings = settings(
    max_examples=examples(60), stateful_step_count=40, deadline=None, suppress_health_check=list(HealthCheck)
)
TestServerGroupUnderFire = ServerGroupUnderFire.TestCase
