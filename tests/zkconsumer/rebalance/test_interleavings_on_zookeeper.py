"""The model of ZooKeeper is faithful: random interleavings of members on the model and on a real server at once."""

from __future__ import annotations

import random

import pytest

from tests.support.model.actions import CALM, EXPIRIES, GARBAGE, WEIGHTS, Actions, beginning, end_of_faults, touch
from tests.support.model.invariants import Invariants
from tests.zkconsumer.rebalance.mirrored_zookeeper import mirrored

ACTIONS = (*CALM, *EXPIRIES, *GARBAGE)
STEPS = 120
#: Options with requests that the original does not send: sync, transactions, deletes of one version.
OPTIONS = {"sync_before_reads": True, "fence_epochs": True, "checked_release": True, "checked_claim": True}


@pytest.mark.parametrize("seed", range(4))
def test_real_responses_and_notifications_equal_the_models(chroot: str, seed: int) -> None:
    play(chroot, seed)


@pytest.mark.long
@pytest.mark.parametrize("seed", range(4, 60))
def test_real_responses_and_notifications_equal_the_models_under_more_seeds(chroot: str, seed: int) -> None:
    play(chroot, seed)


def play(chroot: str, seed: int) -> None:
    """Members act on the real answers; each answer and each notification is compared with the model's."""
    chosen = random.Random(seed)
    with mirrored(chroot) as zookeeper:
        group = beginning(zookeeper)
        held = Invariants(group)
        with_options = seed % 2 == 1
        actions = Actions(group, chosen.randrange, OPTIONS if with_options else {}, "epoch" if with_options else "none")
        actions.join()
        actions.join()
        weights = [WEIGHTS.get(name, 1) for name in ACTIONS]
        for name in chosen.choices(ACTIONS, weights, k=STEPS):
            getattr(actions, name)()
        end_of_faults(group)
        touch(group)
        held.every_partition_has_the_rules_owner_or_an_idle_member()
        for member in group.members:
            if member.connected:
                zookeeper.compare_notices(member.session)
        assert zookeeper.compared > 30, "hardly anything was compared"
