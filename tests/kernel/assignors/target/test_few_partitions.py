"""`uniform` gives up few partitions one by one, and many in arrays, with the same answer."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernel.assignors.target import uniform
from kernel.assignors.target.group import NOBODY, TargetGroup, TopicGrid


@given(st.integers(1, 9), st.data())
def test_few_partitions_are_given_up_as_many_are(members: int, data: st.DataObject) -> None:
    size = data.draw(st.integers(1, 120))
    owner = data.draw(st.lists(st.integers(NOBODY, members - 1), min_size=size, max_size=size))
    names = tuple(f"m{number}" for number in range(members))
    present = np.array(owner, np.int32)
    grid = TopicGrid.of([(bytes(16), size)])
    group = TargetGroup(names, (None,) * members, grid, None, present, lambda _: grid.ids)
    found = []
    for few in (0, 1_000):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(uniform, "FEW", few)
            found.append(uniform.assign_uniform(group).tolist())
    assert found[0] == found[1]
