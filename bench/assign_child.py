"""One call of an assignor in Python, in this process: `assign_hosts.call_python` starts it and reads the figures.

Memory is measured in the first run: growth of the resident set from just before the call to its peak. The first run is
timed like the others, but dropped from the figures when there are others, because it also allocates the memory.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import resource
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from bench.assign_cases import NOBODY, read_group, write_answer
from comparison.scenarios.processes.host import Host

if TYPE_CHECKING:
    from collections.abc import Callable


# -- memory ------------------------------------------------------------------------------------------------------------


class Growth:
    """Growth of the resident set, from construction to its peak."""

    def __init__(self) -> None:
        gc.collect()
        self._resets = sys.platform == "linux"
        if self._resets:
            ctypes.CDLL(None).malloc_trim(0)
            Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
        self._before = self._read("VmRSS") if self._resets else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss

    def megabytes(self) -> float:
        peak = self._read("VmHWM") if self._resets else resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return (peak - self._before) * 1024 / 1e6

    @staticmethod
    def _read(name: str) -> int:
        """The value in kilobytes."""
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.split(f"{name}:")[1].split()[0])


#: Module and class of each strategy in kafka-python 3.
KAFKA_PYTHON = {
    "range": ("range", "RangePartitionAssignor"),
    "roundrobin": ("roundrobin", "RoundRobinPartitionAssignor"),
    "sticky": ("sticky.sticky_assignor", "StickyPartitionAssignor"),
    "cooperative-sticky": ("cooperative_sticky", "CooperativeStickyAssignor"),
}


# -- what is called ----------------------------------------------------------------------------------------------------


def wire(request: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """Our assignor: subscription bytes in, assignment bytes out."""
    from coordinator.assignment.sticky import assign

    sizes, members = read_group(Path(request["group"]))
    return (
        lambda: assign(request["strategy"], sizes, members, exact_up_to=request["exact_up_to"]),
        lambda answer: write_answer(Path(request["answer"]), answer),
    )


def core(request: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """Our assignor on integer arrays, members in hash order; claims are valid and unique."""
    from kernel.assignors.group_arrays import Grid, Roster, Settled

    given = np.load(request["arrays"])
    grid, roster = Grid.of(request["sizes"]), Roster.of(request["members"])
    place = {member: at for at, member in enumerate(request["members"])}
    order = np.array([place[member] for member in roster.members])  # position in the list of each member in hash order
    in_hash_order = np.append(np.argsort(order), NOBODY).astype(np.int32)
    had = in_hash_order[given["owner"]]  # NOBODY stays NOBODY: it is the last entry
    if request["equal"]:
        from kernel.assignors.sticky import assign_equal

        settled = Settled(had, np.zeros(len(had), np.bool_))
        call: Callable[[], Any] = lambda: assign_equal(grid, roster, settled).owner  # noqa: E731
    else:
        from kernel.assignors.balanced import balance

        subscribed = given["subscribed"][order]
        call = lambda: balance(grid.starts, subscribed, had)  # noqa: E731
    back = np.append(order, NOBODY).astype(np.int32)
    return call, lambda owner: np.save(request["answer"], back[owner])


def target(request: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """The coordinator's assignors; topics keep their order, since drawn ids would only permute them."""
    from kernel.assignors.hash_order import texts_in_hash_order
    from kernel.assignors.target.group import TargetGroup, TopicGrid
    from kernel.assignors.target.registry import TARGET_ASSIGNORS

    given = np.load(request["arrays"])
    grid = TopicGrid.of([((at + 1).to_bytes(16), size) for at, size in enumerate(request["sizes"].values())])
    members = texts_in_hash_order(request["members"])
    place = {member: at for at, member in enumerate(request["members"])}
    order = np.array([place[member] for member in members])
    in_hash_order = np.append(np.argsort(order), NOBODY).astype(np.int32)
    subscribed = None if request["equal"] else given["subscribed"][order]
    owner = in_hash_order[given["owner"]]
    group = TargetGroup(tuple(members), (None,) * len(members), grid, subscribed, owner, lambda _: grid.ids)
    assert [int.from_bytes(topic) for topic in grid.ids] == list(range(1, len(grid.ids) + 1)), (
        "topics are not in the given order"
    )
    back = np.append(order, NOBODY).astype(np.int32)
    assign = TARGET_ASSIGNORS[request["strategy"]]
    return lambda: assign(group), lambda owner: np.save(request["answer"], back[owner])


def kafka_python(request: dict[str, Any]) -> tuple[Callable[[], Any], Callable[[Any], None]]:
    """kafka-python's assignor as its leader calls it: decoded subscriptions in, assignment objects out."""
    from kafka.protocol.consumer.metadata import ConsumerProtocolSubscription

    sizes, members = read_group(Path(request["group"]))
    module, name = KAFKA_PYTHON[request["strategy"]]
    assignor = getattr(importlib.import_module(f"kafka.coordinator.assignors.{module}"), name)()
    subscribed = [
        SimpleNamespace(member_id=member, group_instance_id=None, metadata=ConsumerProtocolSubscription.decode(data))
        for member, data in members.items()
    ]
    for member in subscribed:
        if request["strategy"] == "sticky" and member.metadata.user_data:
            member.metadata.user_data = b"\0\1" + member.metadata.user_data  # its own form begins with a version
    cluster = SimpleNamespace(
        topics=lambda: set(sizes), partitions_for_topic=lambda topic: set(range(sizes.get(topic, 0))) or None
    )

    def write(answer: Any) -> None:
        given = {member: each.encode() for member, each in answer.items()}
        write_answer(Path(request["answer"]), given)

    return lambda: assignor.assign(cluster, subscribed), write


SUBJECTS = {"wire": wire, "core": core, "target": target, "kafka-python": kafka_python}


def main() -> None:
    request = json.loads(sys.stdin.readline())
    call, write = SUBJECTS[request["subject"]](request)
    first: Any = None
    done, again = 0, True
    while again:
        gc.collect()
        growth = Growth() if done == 0 else None
        Host().write({"event": "assigning"})
        begin, cpu_begin = time.perf_counter(), time.process_time()
        try:
            answer = call()
        except (MemoryError, LookupError, TypeError, ValueError, AttributeError) as error:
            Host().write({"event": "failed", "error": f"{type(error).__name__}: {error}"[:200]})
            return
        seconds, cpu_s = time.perf_counter() - begin, time.process_time() - cpu_begin
        memory = {} if growth is None else {"memory_mb": growth.megabytes()}
        if done == 0:
            first = answer
            write(answer)
        same = bool(np.array_equal(answer, first)) if isinstance(answer, np.ndarray) else answer == first
        Host().write({"event": "run", "same": same, "assign": [seconds, cpu_s], **memory})
        del answer
        done += 1
        again = any(done < most and seconds < limit_s for most, limit_s in request["runs"])
    Host().write({"event": "done"})


if __name__ == "__main__":
    main()
