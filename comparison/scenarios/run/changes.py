"""Makes one change of the group at a time, and waits until the group has settled."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING

from comparison.scenarios.plan.phase import interval_ms, share_of
from comparison.scenarios.testbed.group_view import QUIET_MS
from kernel.designs import DESIGNS, ZOOKEEPER
from kernel.waiting import WaitTimeout

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from comparison.scenarios.testbed.group_members import GroupMembers
    from comparison.scenarios.testbed.testbed import Testbed

#: On top of the detection: the rebalance and, in zookeeper, several attempts with their backoff.
SETTLE_S = 60.0
_QUIET_S = 60.0
#: How long members that are to rebalance by themselves are waited for.
_SESSIONS = 2


class Changes:
    """Shared by all kinds of steps: the group and the trace."""

    def __init__(self, testbed: Testbed, members: GroupMembers, enter_stage: Callable[[str], None]) -> None:
        self.testbed = testbed
        self.members = members
        self.tracer = testbed.tracer
        self.configuration = testbed.request.configuration
        self.enter_stage = enter_stage
        self.begun_s = 0.0  #: when the first step ended, by the event loop
        self._phases = 0
        self._made: set[tuple[str, int]] = set()
        #: Detection takes a session timeout, and delayed waits for its delay.
        self.takeover_s = (self.configuration.session_ms + self.configuration.delay_ms) / 1000 + SETTLE_S

    async def settle(self) -> None:
        """Wait until every partition has one owner and the group is quiet. Raises `WaitTimeout`.

        Both at once, and not before some time has passed: a group that a fault or its heal is about to disturb may look
        settled, since its members have not heard of it.
        """
        await self.members.until_settled(self.takeover_s + _QUIET_S, quiet_ms=QUIET_MS)

    async def quiet(self) -> None:
        await self.members.until_quiet(_QUIET_S)

    async def wait_for_phase(self, *, commits: bool = False) -> None:
        """Wait for the phase of the next change; see `comparison.scenarios.plan.phase`.

        It is drawn over the heartbeat interval, and with `commits` over the automatic commits' interval as well.
        """
        made, request = self.configuration, self.testbed.request
        self._phases += 1
        interval = interval_ms(made.heartbeat_ms, made.commit_interval_ms if commits else 0)
        if not interval:
            return
        share = share_of(request.parameters.seed, request.scenario.name, self._phases)
        wait_ms = round(share * interval)
        detail = {"share": round(share, 4), "interval_ms": interval, "wait_ms": wait_ms}
        self.tracer.emit("phase_drawn", detail=detail)
        await asyncio.sleep(wait_ms / 1000)

    async def make(
        self,
        change: str,
        make: Callable[[], Awaitable[object] | None],
        *,
        members: int,
        round_: int = 1,
        counted: bool = False,
        stage: str = "fault",
        detail: Mapping[str, object] | None = None,
    ) -> None:
        """Make one change: trace it, make it, wait until the group has settled and is quiet.

        `members` is their number afterwards; `counted` reads the servers' counters before and after. A round that there
        was already becomes the next one. Raises `WaitTimeout`, and what `make` raises.
        """
        round_ = self._free_round(change, round_)
        self.enter_stage(stage)
        if counted:
            await self.testbed.zookeeper.count(f"{change}-{round_}:before")
        self._trace_start(change, round_, members, detail)
        everybody = self._notified(members)
        making = make()
        if making is not None:
            await making
        # They hear of a killed member when its session ends. One behind a cut never does, and loses its own.
        with contextlib.suppress(WaitTimeout):
            await self.members.until_all_rebalance(everybody, _SESSIONS * self.configuration.session_ms / 1000)
        await self.members.until_settled(self.takeover_s)
        self.tracer.emit("change_settled", change=change, round=round_, members=members)
        await self.quiet()
        if counted:
            await self.testbed.zookeeper.count(f"{change}-{round_}:after")

    def begin(self, change: str, *, members: int, detail: Mapping[str, object]) -> None:
        """Trace a change that nobody waits for."""
        self.enter_stage("fault")
        self._trace_start(change, self._free_round(change, 1), members, detail)

    def _free_round(self, change: str, round_: int) -> int:
        while (change, round_) in self._made:
            round_ += 1
        self._made.add((change, round_))
        return round_

    def _trace_start(self, change: str, round_: int, members: int, detail: Mapping[str, object] | None) -> None:
        described = {} if detail is None else {"detail": dict(detail)}
        self.tracer.emit("change_started", change=change, round=round_, members=members, **described)  # type: ignore[arg-type]  # none of them is member or stream

    def _notified(self, members: int) -> Mapping[str, int]:
        """The rebalances so far of the processes each of which rebalances by itself when members come or go.

        Until the last of them has begun, the partitions may each have one owner, and not the one that they will have:
        a member that reads over a slow link begins when the others have long been quiet.
        """
        each_by_itself = self.testbed.request.design == ZOOKEEPER and members != self.members.present
        return self.members.view.begun() if each_by_itself else {}


class StepPerformer:
    """Performs some kinds of steps, each by the method of its name."""

    def __init__(self, changes: Changes) -> None:
        self._changes = changes
        self._members = changes.members
        self._testbed = changes.testbed
        self._configuration = changes.configuration
        self._design = DESIGNS[changes.testbed.request.design]


async def sleep_until(loop_s: float) -> None:
    """Sleep until the event loop's time reaches this value: a fault's length is part of the experiment."""
    await asyncio.sleep(max(0.0, loop_s - asyncio.get_running_loop().time()))
