"""One run from start to end: warm up, the scenario's steps, heal, drain, final reads, stop.

Whatever happens (a step that times out, a child that dies, an interrupt), everything that was started is stopped and
reaped, and the trace says how the run ended: `complete`, `interrupted` or `failed`. An incomplete run is analysed as
well; its verdicts are `unknown` where it was too short.
"""

from __future__ import annotations

import asyncio
import contextlib
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from comparison.run_folder import SCENARIO_FILE, RunRecord, keep_scenario, unwritable
from comparison.scenarios.plan.admitted import file_of
from comparison.scenarios.plan.catalogue import counts_predicted, judged_by
from comparison.scenarios.plan.descriptors import members_in_all
from comparison.scenarios.plan.faults import fault_named
from comparison.scenarios.plan.plugins import kept_plugins, loaded
from comparison.scenarios.plan.vocabulary import Form, Inject
from comparison.scenarios.plan.wording import for_readers
from comparison.scenarios.processes.gathering import gather_or_cancel
from comparison.scenarios.run.draining import drain
from comparison.scenarios.run.final_reads import read_final_offsets
from comparison.scenarios.run.steps import Nemesis, nobody
from comparison.scenarios.testbed.group_members import GroupMembers
from comparison.scenarios.testbed.testbed import Testbed
from kernel.errors import UNWRITABLE, EnvironmentFault, RebalanceLabError, UserError
from kernel.platform.full_disk import full_disk, full_disk_named
from kernel.trace.events import Role
from kernel.trace.words import TimeSource
from kernel.trace.writer import TraceWriter
from kernel.zookeeper.target import parse_target

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine, Mapping
    from pathlib import Path

    from comparison.scenarios.plan.request import RunRequest
    from comparison.scenarios.processes.children import Processes
    from comparison.scenarios.run.steps import Player
    from comparison.scenarios.testbed.lent import LentEnsemble

    #: Performs a run as `perform` does, and says each stage that it enters.
    Perform = Callable[
        [RunRequest, Mapping[str, object], asyncio.Event, Callable[[str], None]], Coroutine[Any, Any, "RunOutcome"]
    ]

_CANCELLATIONS_MAX, _CANCELLATION_S = 30, 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RunOutcome:
    """How a run ended; `error` is '' if it is complete."""

    outcome: str
    error: str
    seconds: float
    baseline: dict[str, float]  #: see `comparison.scenarios.testbed.baseline`; empty if it was not measured


class Run:
    """Performs one request; create one for each."""

    def __init__(
        self,
        request: RunRequest,
        processes: Processes,
        on_stage: Callable[[str], None],
        record: RunRecord,
        play: Player = nobody,
        lent: LentEnsemble | None = None,
    ) -> None:
        self._request = request
        self._record = record
        self._on_stage = on_stage
        #: Until the run has ended: the outcome of one that was aborted.
        self.outcome = RunOutcome(outcome="failed", error="the run was aborted", seconds=0.0, baseline={})
        self._runtime = processes.runtime
        self._tracer = self._writer(Role.RUNNER, "runner")
        self._proxy_tracer = self._writer(Role.PROXY, "proxy")
        self._testbed = Testbed(request, processes, self._tracer, self._proxy_tracer, record, lent)
        members = members_in_all(request.scenario, request.parameters)
        self._members = GroupMembers(self._testbed, -(-members // request.scenario.members_per_process))
        self._nemesis = Nemesis(self._testbed, self._members, self._enter, play)

    def _writer(self, role: Role, process: str) -> TraceWriter:
        self._record.add_traces(role, [process])
        path = self._request.run_dir / "trace" / f"{process}.jsonl"
        return TraceWriter(path, self._request.trace_identity(role, process), clock=self._runtime.clock)

    async def perform(self, interrupted: asyncio.Event) -> RunOutcome:
        """Run to the end, the time limit or the interrupt.

        Raises `UserError` when the run cannot start, or its folder cannot be written: a full disk is named, whatever
        failed because of it.
        """
        with full_disk_named(self._request.run_dir):
            try:
                outcome = await self._perform(interrupted)
            except OSError as caught:
                if caught.errno in UNWRITABLE:
                    raise unwritable(self._request.run_dir, caught) from caught
                raise
        if outcome.outcome == "failed" and (full := full_disk(self._request.run_dir)) is not None:
            raise full
        return outcome

    async def _perform(self, interrupted: asyncio.Event) -> RunOutcome:
        begun = asyncio.get_running_loop().time()
        self._tracer.emit("run_started", parameters=_detail(self._request))
        # Any other exception is a bug of ours: the run is then not complete.
        outcome, error = "failed", ""
        steps = asyncio.create_task(self._perform_steps())
        stopped = asyncio.create_task(interrupted.wait())
        try:
            await asyncio.wait(
                [steps, stopped],
                timeout=self._request.parameters.time_limit_s,
                return_when=asyncio.FIRST_COMPLETED,
            )
            if not steps.done():
                outcome = "interrupted" if interrupted.is_set() else "failed"
                error = (
                    "" if interrupted.is_set() else f"time limit of {self._request.parameters.time_limit_s:g} s reached"
                )
            else:
                error = _error_text(steps.exception())
                steps.result()
                outcome = "complete"
        except UserError:
            raise
        except RebalanceLabError:
            pass  # it is in `error`
        except OSError as caught:
            if caught.errno in UNWRITABLE:
                raise
        finally:
            await _cancelled(steps, stopped)
            try:
                await self._stop(outcome, error)
            finally:
                self.outcome = replace(self.outcome, seconds=round(asyncio.get_running_loop().time() - begun, 3))
        return self.outcome

    async def _perform_steps(self) -> None:
        self._enter("warm")
        await gather_or_cancel(self._members.warm_up(), self._testbed.start())
        for step in self._request.scenario.steps:
            await self._nemesis.perform(step)
        await self._nemesis.end_faults()
        await self._drain()
        self._enter("final")
        await read_final_offsets(self._testbed, self._tracer)
        # Last, so that everything else has been measured.
        await self._testbed.zookeeper.check_observed()

    async def _drain(self) -> None:
        """Wait until everything produced is delivered and committed."""
        self._enter("drain")
        await self._testbed.end_load()
        await drain(self._members, self._testbed.load.ends)

    async def _stop(self, outcome: str, error: str) -> None:
        """Stop everything that was started, in an order that keeps the last events.

        A part is stopped even if stopping or tracing another one fails. After an interrupt all processes are killed:
        the user waits, and traces are written through.
        """
        zookeeper = self._testbed.zookeeper
        at_once = outcome == "interrupted"
        async with contextlib.AsyncExitStack() as last_to_first:
            last_to_first.push_async_callback(self._runtime.threads.run, zookeeper.write_observations)
            last_to_first.callback(self._proxy_tracer.close)
            last_to_first.callback(self._tracer.close)
            last_to_first.push(self._ended(outcome, error))
            last_to_first.push_async_callback(zookeeper.stop)
            last_to_first.push_async_callback(self._testbed.stop_brokers, at_once=at_once)
            last_to_first.push_async_callback(self._testbed.stop_bystander, at_once=at_once)
            last_to_first.push_async_callback(self._members.stop, at_once=at_once)
            last_to_first.callback(self._enter, "stop")
            last_to_first.callback(zookeeper.heal)
            last_to_first.callback(self._nemesis.heal)

    def _ended(self, outcome: str, error: str) -> Callable[[object, BaseException | None, object], None]:
        """Trace how the run ended. If a part could not be stopped, traces may be incomplete: the run has failed."""

        def trace_end(_kind: object, caught: BaseException | None, _traceback: object) -> None:
            failed = (
                ("failed", _error_text(caught)) if caught is not None and outcome == "complete" else (outcome, error)
            )
            self.outcome = RunOutcome(outcome=failed[0], error=failed[1], seconds=0.0, baseline=self._testbed.baseline)
            self._tracer.emit("run_ended", outcome=failed[0], error=failed[1])

        return trace_end

    def _enter(self, stage: str) -> None:
        self._tracer.emit("stage_entered", stage=stage)
        self._on_stage(stage)


async def _cancelled(*tasks: asyncio.Task[Any]) -> None:
    """End tasks; a user's step may swallow a cancellation, so it is repeated."""
    for _ in range(_CANCELLATIONS_MAX):
        for task in tasks:
            task.cancel()
        _, left = await asyncio.wait(tasks, timeout=_CANCELLATION_S)
        if not left:
            break
    for task in tasks:
        if task.done() and not task.cancelled():
            task.exception()  # it has been dealt with


async def perform(
    request: RunRequest,
    provenance: Mapping[str, object],
    processes: Processes,
    interrupted: asyncio.Event,
    on_stage: Callable[[str], None] = lambda _: None,
    play: Player = nobody,
    lent: LentEnsemble | None = None,
) -> RunOutcome:
    """Perform one run and write its `run.json`: the plan before it, the trace files in it, the outcome after it.

    `play` performs the step `Played` of a scenario that has one. `lent` is an ensemble that other runs use as well.
    """
    about = {
        **provenance,
        "run": request.run,
        "scenario": request.scenario.name,
        "design": request.design,
        "zookeeper": request.zookeeper,
        "parameters": request.parameters.as_json(),
        "configuration": asdict(request.configuration),
        "warnings": list(request.warnings),
        "described": for_readers(request.scenario),
        **_kept_files(request),
    }
    record = RunRecord(request.run_dir, about)
    run = Run(request, processes, on_stage, record, play, lent)
    try:
        return await run.perform(interrupted)
    finally:
        with contextlib.suppress(EnvironmentFault) if run.outcome.outcome == "failed" else contextlib.nullcontext():
            record.end(asdict(run.outcome))


def live(processes: Processes) -> Perform:
    """What performs runs with these processes."""

    async def perform_live(
        request: RunRequest,
        provenance: Mapping[str, object],
        interrupted: asyncio.Event,
        on_stage: Callable[[str], None] = lambda _: None,
    ) -> RunOutcome:
        return await perform(request, provenance, processes, interrupted, on_stage)

    return perform_live


def keep_plugins(folder: Path) -> list[dict[str, str]]:
    """Keep the files of own steps and faults in a folder, beside the scenario's; what run.json says about them."""
    for name, plugin in kept_plugins().items():
        keep_scenario(plugin.text, folder / name)
    return [{"plugin": each.named, "sha256": each.digest} if each.path else {"plugin": each.named} for each in loaded()]


def _kept_files(request: RunRequest) -> dict[str, object]:
    """Keep the files that a scenario was made from in the run's folder; what run.json says about them."""
    kept: dict[str, object] = {}
    file = file_of(request.scenario)
    if file is not None:
        keep_scenario(file.text, request.run_dir / SCENARIO_FILE)
        kept["scenario_file"] = {"path": file.path, "kept": SCENARIO_FILE, "sha256": file.digest}
    plugins = keep_plugins(request.run_dir)
    return {**kept, "plugins": plugins} if plugins else kept


def _error_text(caught: BaseException | None) -> str:
    """The text of an error for the trace, with the class if it is a bug of ours."""
    if caught is None:
        return ""
    return str(caught) if isinstance(caught, RebalanceLabError | OSError) else f"{type(caught).__name__}: {caught}"


def _detail(request: RunRequest) -> dict[str, object]:
    return {
        **request.parameters.as_json(),
        "scenario": request.scenario.name,
        "design": request.design,
        **_named(request),
        "member_settings": dict(request.configuration.member),
        "broker_settings": dict(request.configuration.broker),
        "session_ms": request.configuration.session_ms,
        "injected": _injected(request),
        "observed": "log"
        if parse_target(request.zookeeper).ours
        else "given log"
        if request.zookeeper_logs
        else "live",
        **({"simulated": True} if request.clock is TimeSource.SIMULATED else {}),
        **({"warnings": list(request.warnings)} if request.warnings else {}),
        "checks": list(judged_by(request.scenario)),
        **({"only_promises": True} if request.scenario.only_promises else {}),
        "counts_predicted": counts_predicted(request.scenario),
    }


def _injected(request: RunRequest) -> list[dict[str, object]]:
    """The faults that the steps inject, with all their parameters: what a figure depends on."""
    return [
        {"fault": step.fault, "target": step.target, **fault_named(step.fault).values(step.parameters)}
        for step in request.scenario.steps
        if isinstance(step, Inject)
    ]


def _named(request: RunRequest) -> dict[str, object]:
    """Timers and strategy under names that do not depend on the design."""
    made = request.configuration
    steps = request.scenario.steps
    away = [ms for step in steps if (ms := step.away(made.session_ms, made.delay_ms)) is not None]
    changed_from = next((step.design for step in steps if isinstance(step, Form) and step.design), "")
    strategy = made.member.get("partition.assignment.strategy")
    topics = request.parameters.topic_names
    subscriptions = {
        f"m{place}": [topics[number] for number in numbers]
        for place, numbers in request.scenario.first_topics.items()
        if not any(step.changes_subscriptions for step in steps)
    }
    return {
        "timers": {
            "session_ms": made.session_ms,
            "heartbeat_ms": made.heartbeat_ms,
            "delay_ms": made.delay_ms,
            "max_poll_ms": made.max_poll_ms,
            "metadata_age_ms": made.metadata_age_ms,
        },
        **({"changed_from": changed_from} if changed_from else {}),
        **({"away_ms": away[0]} if away else {}),
        **({"strategy": strategy} if strategy else {}),
        **({"subscriptions": subscriptions} if subscriptions else {}),
    }
