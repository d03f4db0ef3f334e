"""The coordinator's assignors by name, in the order of group.consumer.assignors: the first is the default."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING

from kernel.assignors.target.mixed import assign_mixed
from kernel.assignors.target.ranges import assign_target_ranges
from kernel.assignors.target.uniform import assign_uniform

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import numpy as np
    from numpy.typing import NDArray

    from kernel.assignors.target.group import TargetGroup

    TargetAssignor = Callable[[TargetGroup], NDArray[np.int32]]


def _uniform(group: TargetGroup) -> NDArray[np.int32]:
    return assign_uniform(group) if group.subscribed is None else assign_mixed(group)


TARGET_ASSIGNORS: Mapping[str, TargetAssignor] = MappingProxyType({"uniform": _uniform, "range": assign_target_ranges})
