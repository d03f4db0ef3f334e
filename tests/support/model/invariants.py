"""Invariants of a model group: those that always hold, and those that hold unless something severe happened.

`Invariants(group)` checks every step (`group.on_step`); the other methods are called between steps. Each raises
AssertionError with what it saw.
"""

from __future__ import annotations

from collections import Counter

from kernel.values import NO_OFFSET
from kernel.zookeeper import paths
from tests.support.model.group import ModelGroup
from tests.support.model.member import GROUP, Done, ModelMember
from tests.support.model.zookeeper import Call
from zkconsumer.rebalance.state import RebalanceState
from zkconsumer.znodes.payloads import STATIC, UnreadableZnode, parse_registration

READS = ("exists", "getData", "getChildren")


class Invariants:
    """The invariants of one group; `calm`: no running member's session has ended and no read was stale."""

    def __init__(self, group: ModelGroup) -> None:
        self.group = group
        self.counted = 0  #: successful attempts whose operations were compared with the model
        self._seen: Counter[ModelMember] = Counter()
        self._ended: Counter[ModelMember] = Counter()
        self._adopted: dict[ModelMember, object] = {}
        group.on_step = self._look

    @property
    def sessions_live(self) -> bool:
        """Whether no running member has lost its session."""
        return not any(member.lost_sessions for member in self.group.members)

    @property
    def calm(self) -> bool:
        return self.sessions_live and not self.group.zookeeper.stale_reads

    # -- between steps -----------------------------------------------------------------------------------------------

    def owner_nodes_belong_to_living_sessions_of_their_threads(self) -> None:
        """So no partition has two owners in ZooKeeper: a node belongs to one member and disappears with its session."""
        sessions = self.group.zookeeper.sessions
        for partition, thread in self.group.owners().items():
            path = paths.owner(GROUP, partition.topic, partition.partition)
            owner = self.group.zookeeper.leader.nodes[path].owner
            assert owner, f"{partition} has a persistent owner node"
            assert not sessions[owner].ended, f"{partition} is owned by a session that has ended"
            mine = [m for m in self.group.members if thread.startswith(f"{m.consumer_id}-")]
            assert any(owner in m.sessions for m in mine), f"{partition}: {thread} by session {owner}"

    def no_two_deliver(self) -> None:
        """Holds while no session ends. A stale read causes conflicts, not two owners."""
        if self.sessions_live:
            twice = [tp for tp, times in Counter(tp for tp, _ in self.group.delivering()).items() if times > 1]
            assert not twice, f"{twice} by {[(str(tp), m.name) for tp, m in self.group.delivering() if tp in twice]}"

    def what_is_delivered_is_owned(self) -> None:
        """Holds while no session ends: fetchers start after the claim and stop before the release."""
        if self.sessions_live:
            owners = self.group.owners()
            for partition, member in self.group.delivering():
                if member.options.pattern != STATIC and not self.group.partitions(partition.topic):
                    continue  # if no topic matches, R4 empties no stream, as in the original
                assert owners.get(partition) == member.handing[partition].thread, f"{partition} by {member.name}"

    def an_idle_member_has_nothing_to_do(self) -> None:
        """The merged flag loses no change: an idle member has reacted to all notifications."""
        for member in self.group.members:
            if member.machine.state is RebalanceState.IDLE:
                assert not member.machine.triggered or member.machine.quiet_token, (
                    f"{member.name} is idle, with a pending change"
                )
                assert not member.machine.demands, f"{member.name} is idle, with a pending demand"

    def the_registry_is_of_this_session(self) -> None:
        """A new session empties the registry before anything else is done in it."""
        for member in self.group.members:
            if not member.renewal_unnoticed:
                for position in member.registry.values():
                    assert position.adopted_in == member.session.number, f"{member.name}: {position}"

    def the_registry_is_what_the_machine_will_release(self) -> None:
        """Two views of the same partitions: those committed and delivered, and those that R5 releases."""
        for member in self.group.members:
            if member.closed or member.machine.config.listener_in_attempt:
                continue  # the registry is no longer used, or the listener raised and our node is still to be released
            assert {claim.topic_partition for claim in member.machine.owned} == set(member.registry), member.name

    # -- at every step -----------------------------------------------------------------------------------------------

    def _look(self, member: ModelMember) -> None:
        for event in member.emitted[self._seen[member] :]:
            if (event.kind, event.fields.get("phase")) == ("phase_entered", "join"):
                self.everything_is_released_before_the_group_is_read(member)
            if event.kind == "attempt_ended":
                self._attempt_ended(member, int(str(event.fields["attempt"])), str(event.fields["outcome"]))
        self._seen[member] = len(member.emitted)
        if member.adopted is not self._adopted.get(member, ()):
            self._adopted[member] = member.adopted
            self.offsets_start_where_they_were_read(member)

    def _attempt_ended(self, member: ModelMember, number: int, outcome: str) -> None:
        assert number <= member.machine.config.max_retries
        self._ended[member] += 1
        done = [one for one in member.done if one.program == "executor" and one.attempt == self._ended[member]]
        if outcome == "conflict":
            self.a_conflict_leaves_nothing(member, done)
        if outcome == "ok" and not member.cuts:  # calls cut off by a disconnect are sent twice
            self.operations_are_the_models(member, done)

    def everything_is_released_before_the_group_is_read(self, member: ModelMember) -> None:
        """Holds while no session ends: R5 leaves no owner node of ours. (A raising listener leaves claims.)"""
        if self.sessions_live and not member.machine.config.listener_in_attempt:
            nodes = self.group.zookeeper.leader.nodes
            for partition in self.group.owners():
                path = paths.owner(GROUP, partition.topic, partition.partition)
                assert nodes[path].owner != member.session.number, f"{member.name} still owns {partition}"

    def a_conflict_leaves_nothing(self, member: ModelMember, done: list[Done]) -> None:
        """The attempt's claims were rolled back, unless its session ended meanwhile."""
        if not self.sessions_live:
            return
        nodes = self.group.zookeeper.leader.nodes
        for call in _claims(done):
            node = nodes.get(call.path)
            assert node is None or node.owner != member.session.number, f"{member.name} left {call.path}"

    def operations_are_the_models(self, member: ModelMember, done: list[Done]) -> None:
        """r_i without the leader finder: N + T + 2B + 6 + k', and one more read for each lost claim.

        B is the number of brokers in each of the two lists; a claim with missing parents takes more creates.
        """
        if member.machine.config.offsets_from != {"zookeeper"}:
            return
        if not (lists := [one for one in done if one.step in ("R1", "R3") and one.call.op == "getChildren"]):
            return
        brokers = sum(1 + len(one.reply.children) for one in lists)
        listed = ("getChildren", paths.member_ids(GROUP))
        ids = [one for one in done if one.step == "R6" and (one.call.op, one.call.path) == listed]
        if not ids:  # no broker was found: nothing else was read
            return
        members = len(ids[0].reply.children)
        wanted = sum(one.step == "R8" for one in done)
        lost = sum(one.step == "R11" and one.call.op == "getData" for one in done)
        reads = sum(one.call.op in READS and one.step != "R5" for one in done)  # a checked release reads there
        is_topic = [one.call.path.startswith(f"{paths.BROKER_TOPICS}/") for one in done if one.step == "R6"]
        topics = sum(is_topic) if member.options.pattern != STATIC else len(member.options.wanted)
        # A pattern is matched against the names of all topics: our own in R2, and all that R6 reads.
        patterns = (member.options.pattern != STATIC) + sum(_has_pattern(one) for one in done)
        expected = brokers + 1 + (members + topics + 3) + patterns + wanted + lost
        assert reads == expected, f"{member.name}: {reads} reads, expected {expected}"
        assert len(_claims(done)) + lost == wanted, f"{member.name}: {len(_claims(done))} claims of {wanted}"
        self.counted += 1

    def offsets_start_where_they_were_read(self, member: ModelMember) -> None:
        """A partition starts at the offset that R8 read; it is outdated only if another member has committed since."""
        if member.machine.config.offsets_from != {"zookeeper"}:
            return
        for position in member.adopted:
            path = paths.offset(GROUP, position.partition.topic, position.partition.partition)
            read = next(d for d in reversed(member.done) if d.step == "R8" and d.call.path == path)
            offset = NO_OFFSET if read.reply.error else int(read.reply.data)
            assert position.checkpointed == offset
            since = self.group.zookeeper.changed_since(read.reply.zxid)
            committed = self.group.committed(position.partition)
            assert offset == committed or path in since, f"{position.partition}: {offset}, committed {committed}"

    # -- at the end ------------------------------------------------------------------------------------------------

    def every_partition_has_the_rules_owner_or_an_idle_member(self) -> None:
        """Idle: its last rebalance failed, and nothing has changed since (KAFKA-4228)."""
        owners = self.group.owners()
        by_id = {member.consumer_id: member for member in self.group.members if member.alive}
        for partition, thread in self.group.by_the_rule().items():
            if owners.get(partition) != thread:
                member = by_id[thread.rsplit("-", 1)[0]]
                assert member.gave_up or member.missed_a_broker, (
                    f"{partition} belongs to {owners.get(partition)}, by the rule to {thread}"
                )

    def no_change_is_lost(self) -> None:
        """Merging: a rebalance begins after the last notified change, whatever was running at that moment."""
        for member in self.group.members:
            kinds = [
                event.kind for event in member.emitted if event.kind in ("rebalance_triggered", "rebalance_started")
            ]
            if member.alive and not member.closed and kinds:
                assert kinds[-1] == "rebalance_started", f"{member.name} did not react to the notification of a change"

    def everything_handed_out_is_without_a_gap(self) -> None:
        """No offset is skipped: deliveries start at committed offsets, and committed ones were delivered before."""
        for partition, pieces in self.group.handed.items():
            reached = 0
            for _, first, after in sorted(pieces, key=lambda piece: piece[1]):
                assert first <= reached, f"{partition}: offsets {reached} to {first} were not delivered"
                reached = max(reached, after)
            assert self.group.committed(partition) <= reached

    def rebalances_and_attempts_are_traced_in_pairs(self) -> None:
        """Each attempt that failed backs off before anything else; no rebalance has more attempts than allowed."""
        for member in self.group.members:
            kinds = [event.kind for event in member.emitted]
            for begun, ended in (("rebalance_started", "rebalance_ended"), ("attempt_started", "attempt_ended")):
                pairs = [kind for kind in kinds if kind in (begun, ended)]
                assert pairs == ([begun, ended] * len(pairs))[: len(pairs)]
            for stream in {event.stream for event in member.emitted if event.stream is not None}:
                delivery = [event.kind for event in member.emitted if event.stream == stream]
                assert delivery == (["partitions_assigned", "partitions_revoked"] * len(delivery))[: len(delivery)]
            phase = ""
            for event in member.emitted:
                if event.kind == "phase_entered":
                    phase = str(event.fields["phase"])
                elif event.kind == "attempt_ended" and event.fields["outcome"] not in ("ok", "unavailable"):
                    assert phase == "backoff", f"{member.name}: no backoff after {event}"


def _has_pattern(done: Done) -> bool:
    """Whether it is a registration with a pattern, read in R6 after the first list of members."""
    if done.step != "R6" or done.call.op != "getData" or paths.parse_member_id(done.call.path) is None:
        return False
    try:
        return parse_registration(done.call.path, done.reply.data).pattern != STATIC
    except UnreadableZnode:
        return False


def _claims(done: list[Done]) -> list[Call]:
    """The successful claims: creates of owner nodes."""
    return [
        one.call
        for one in done
        if one.step == "R11" and one.call.op == "create" and one.call.ephemeral and not one.reply.error
    ]
