"""The fuzzer's judgement of a run as its verdicts, for scenarios that are judged by promises only.

So `run` says of a counterexample what the fuzzer said. The pipeline alone does not: it judges each change by itself, it
calls unknown what a run that failed has left open, and it looks at no log.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from comparison.fuzzing.judging import (
    CLAIMS,
    CRASH,
    JUDGED_AT_THE_END,
    NAMED,
    SETTLES,
    TRACEBACK,
    TWO_OWNERS,
    judge_run,
    keeps_owner_nodes,
)
from comparison.results.outcomes import Kind, VerdictOutcome, worst
from comparison.results.run import Verdict
from kernel.designs import ZOOKEEPER

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comparison.fuzzing.judging import Judgement
    from comparison.pipeline.bronze.runs import TraceRun
    from comparison.results.run import Run

#: What a run shows that keeps what no verdict of the pipeline is about.
_KEPT: Mapping[str, str] = {
    SETTLES: "everything that the run waited for came",
    TWO_OWNERS: "the authority never named two owners of a partition in one generation",
    CLAIMS: "each attempt that lost a claim gave up the others",
    NAMED: "no member deleted another one's, and each partition of the settled group has one",
    CRASH: "no process ended that the run did not end",
    TRACEBACK: "no process wrote one",
}


def promises_alone(traced: TraceRun, run: Run) -> Run:
    """The run with the fuzzer's verdicts if its scenario asks for them, and as it is otherwise."""
    if not run.parameters.get("only_promises"):
        return run
    verdicts = list(verdicts_of(run, judge_run(traced)))
    return msgspec.structs.replace(run, verdicts=verdicts, verdict=worst(each.outcome for each in verdicts))


def verdicts_of(run: Run, judgement: Judgement) -> Iterator[Verdict]:
    """A verdict on each promise: the pipeline's own, but where the judgement says otherwise."""
    broken: dict[str, list[str]] = {}
    for check, reason in judgement.violations:
        broken.setdefault(check, []).append(reason)
    own = [TWO_OWNERS, *_of_zookeeper(run), CRASH, TRACEBACK]
    said = {each.check: each for each in run.verdicts}
    for check in dict.fromkeys((*said, SETTLES, *own, *broken)):
        if check in broken:
            yield _verdict(check, VerdictOutcome.NOT_EXPECTED, "; ".join(broken[check]))
        elif check in own or check in JUDGED_AT_THE_END:
            outcome = VerdictOutcome.UNKNOWN if judgement.unknown else VerdictOutcome.EXPECTED
            yield _verdict(check, outcome, judgement.unknown or _KEPT[check])
        elif said[check].kind is Kind.PROMISE and said[check].outcome is VerdictOutcome.NOT_EXPECTED:
            yield _verdict(check, VerdictOutcome.EXPECTED, f"{said[check].reason}: each kill may lose the one in hand")
        else:
            yield said[check]


def _of_zookeeper(run: Run) -> list[str]:
    if run.design != ZOOKEEPER:
        return []
    return [CLAIMS, NAMED] if keeps_owner_nodes(run) else [CLAIMS]


def _verdict(check: str, outcome: VerdictOutcome, reason: str) -> Verdict:
    return Verdict(check=check, kind=Kind.PROMISE, outcome=outcome, reason=reason)
