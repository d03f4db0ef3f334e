"""Random interleavings of several members over a model of ZooKeeper, one state machine for each set of faults.

Invariants are checked after every step (`tests.support.model.invariants`). At the end of each run everything heals, and
once no member has anything left to do, final invariants are checked.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from tests.support.model import actions as model_actions
from tests.support.model.actions import ALL, CALM, GARBAGE, LISTENERS, SERVERS, STALE, TOPICS, WEIGHTS, Actions
from tests.support.model.group import PATIENT
from tests.support.model.invariants import Invariants
from tests.support.model.zookeeper import ModelZooKeeper
from tests.support.properties import examples
from zkconsumer.rebalance.state import RebalanceState

#: Fields of RebalanceConfig that are on or off.
SWITCHES = (
    "listener_in_attempt",
    "claim_before_offsets",
    "checked_release",
    "checked_claim",
    "stop_on_disconnect",
    "sync_before_reads",
    "retry_when_free",
    "skip_unreadable_members",
)
STORES = (("zookeeper",), ("kafka",), ("zookeeper", "kafka"))


class Calm(RuleBasedStateMachine):
    """Members join, leave, crash, and lose connections and answers; topics grow, brokers start and stop."""

    ACTIONS: tuple[str, ...] = CALM
    SERVERS = 1
    VARIED = False

    def __init__(self) -> None:
        super().__init__()
        self.group = model_actions.beginning(ModelZooKeeper(self.SERVERS))
        self.held = Invariants(self.group)
        self.actions = Actions(self.group, lambda _: 0, varied=self.VARIED)
        self.options: dict[str, object] = {}

    @initialize(retries=st.sampled_from([1, 2, 4, PATIENT]), auto_commit=st.booleans(), patient=st.booleans())
    def settings_are(self, retries: int, auto_commit: bool, patient: bool) -> None:
        self.actions.config = {"max_retries": retries, "auto_commit": auto_commit, "retry_while_closing": patient}

    @rule(data=st.data())
    def happens(self, data: st.DataObject) -> None:
        weighted = [name for name in self.ACTIONS for _ in range(WEIGHTS.get(name, 1))]
        if not self.group.members:
            self.actions.config = {**self.actions.config, **self.options}
            self.actions.join()
            self.actions.join()
        name = data.draw(st.sampled_from(weighted), label="action")
        self.actions.choose = lambda n: data.draw(st.integers(0, n - 1)) if n > 1 else 0
        getattr(self.actions, name)()

    @invariant()
    def owner_nodes_belong_to_living_sessions_of_their_threads(self) -> None:
        self.held.owner_nodes_belong_to_living_sessions_of_their_threads()

    @invariant()
    def no_two_deliver(self) -> None:
        self.held.no_two_deliver()

    @invariant()
    def what_is_delivered_is_owned(self) -> None:
        self.held.what_is_delivered_is_owned()

    @invariant()
    def an_idle_member_has_nothing_to_do(self) -> None:
        self.held.an_idle_member_has_nothing_to_do()

    @invariant()
    def the_registry_is_of_this_session(self) -> None:
        self.held.the_registry_is_of_this_session()

    @invariant()
    def the_registry_is_what_the_machine_will_release(self) -> None:
        self.held.the_registry_is_what_the_machine_will_release()

    def teardown(self) -> None:
        """Heal. If a session has ended, one more change is needed, since deleted owner nodes notify no member."""
        model_actions.end_of_faults(self.group)
        if not self.held.sessions_live:
            model_actions.touch(self.group)
        self.no_two_deliver()
        self.what_is_delivered_is_owned()
        self.held.every_partition_has_the_rules_owner_or_an_idle_member()
        self.held.no_change_is_lost()
        self.held.everything_handed_out_is_without_a_gap()
        self.held.rebalances_and_attempts_are_traced_in_pairs()
        self._everybody_can_close()

    def _everybody_can_close(self) -> None:
        """The shutdown ends from any state, and so does the session with all its nodes."""
        living = [member for member in self.group.members if member.alive]
        for member in living:
            member.close()
        self.group.settle()
        assert all(member.machine.state is RebalanceState.CLOSED for member in living)
        for member in living:
            assert not [n for n in self.group.zookeeper.leader.nodes.values() if n.owner in member.sessions]


class Stale(Calm):
    """In addition, servers lag: reads are old."""

    ACTIONS: tuple[str, ...] = (*CALM, *STALE)
    SERVERS = SERVERS


class Unreadable(Calm):
    """In addition, an unreadable id node is created and deleted, and listeners raise inside attempts."""

    ACTIONS = (*CALM, *GARBAGE)


class Expiries(Stale):
    """In addition, sessions end while their members live, and members come back under their old id."""

    ACTIONS: tuple[str, ...] = ALL


class Varied(Stale):
    """In addition, members subscribe to several topics or to a pattern, and topics are created and deleted."""

    ACTIONS = (*CALM, *STALE, *TOPICS)
    VARIED = True


class Optional(Expiries):
    """Everything, with any of the options."""

    ACTIONS = (*ALL, *TOPICS, *LISTENERS)
    VARIED = True

    @initialize(data=st.data())
    def options_are(self, data: st.DataObject) -> None:
        on = {name: data.draw(st.booleans(), label=name) for name in SWITCHES}
        self.actions.fence = data.draw(st.sampled_from(["none", "session", "epoch"]), label="fence")
        self.options = {
            **on,
            "quiet_ms": data.draw(st.sampled_from([0, 0, 500]), label="quiet_ms"),
            "offsets_from": frozenset(data.draw(st.sampled_from(STORES), label="offsets_from")),
            "fence_epochs": self.actions.fence == "epoch",
        }


def _tested(machine: type[RuleBasedStateMachine], usual: int) -> type:
    case = machine.TestCase
    case.settings = settings(max_examples=examples(usual), stateful_step_count=40, deadline=None)
    return case


TestCalm = _tested(Calm, 60)
TestStale = _tested(Stale, 60)
TestUnreadable = _tested(Unreadable, 40)
TestExpiries = _tested(Expiries, 80)
TestVaried = _tested(Varied, 60)
TestOptional = _tested(Optional, 80)
