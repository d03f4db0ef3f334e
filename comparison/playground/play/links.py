"""The links between members and their authority, which can be cut for each member by itself."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comparison.scenarios.testbed.link_ownership import ports_of_process
from kernel.designs import DESIGNS

if TYPE_CHECKING:
    from collections.abc import Collection

    from comparison.scenarios.testbed.testbed import Testbed


class MemberLinks:
    """Cuts and heals members, by the pid of their process, at the proxies in front of ZooKeeper and the coordinator.

    Fetches go on: another broker leads the topics.
    """

    def __init__(self, testbed: Testbed) -> None:
        design = DESIGNS[testbed.request.design]
        proxies = [
            testbed.zookeeper.member_proxy if design.zookeeper_sessions else None,
            testbed.coordinator_proxy if design.coordinator else None,
        ]
        self._proxies = [proxy for proxy in proxies if proxy is not None]
        self._cut: dict[str, int] = {}  #: by place

    def is_cut(self, place: str) -> bool:
        return place in self._cut

    def cut(self, place: str, pid: int) -> None:
        self._cut[place] = pid
        self._apply()

    def heal(self, place: str) -> None:
        """Does nothing if it is not cut. A process that has ended has to be healed as well: its pid may come again."""
        if self._cut.pop(place, None) is not None:
            self._apply()

    def _apply(self) -> None:
        for proxy in self._proxies:
            if not self._cut:
                proxy.heal()
            elif proxy.cut_off:
                proxy.cut_instead(self._picks)
            else:
                proxy.cut(self._picks)

    def _picks(self, ports: Collection[int]) -> Collection[int]:
        held = (ports_of_process(pid) for pid in self._cut.values())
        return frozenset[int]().union(*held).intersection(ports)
