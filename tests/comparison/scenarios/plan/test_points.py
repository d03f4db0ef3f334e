"""The named points of a rebalance, by their names."""

from __future__ import annotations

import pytest

from comparison.scenarios.plan.points import point_named
from kernel.designs import EAGER
from kernel.errors import ConfigurationError


def test_unknown_point_is_refused_with_those_of_the_design() -> None:
    assert point_named(EAGER, "decide").value == "decide"
    with pytest.raises(
        ConfigurationError, match=r"a rebalance in eager has no point 'release'. Did you mean 'resume'\? Use one of"
    ):
        point_named(EAGER, "release")
