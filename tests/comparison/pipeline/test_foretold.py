"""A change's counts beside the model's: what is taken from the trace, and where the model does not reach."""

from __future__ import annotations

from typing import Any

import pytest
from pyspark.sql import Row

from comparison.pipeline.foretold import counted
from comparison.pipeline.tallies import Tallies

PARAMETERS = {"topics": 1, "partitions": 4, "brokers": 1, "streams": 1}
#: The one that went had two of the four.
OWNERS = [("a", "a"), ("b", "a"), ("c", "b"), ("c", "b")]


def count(n: int, kind: str, name: str = "", *, outcome: str = "ok", step: str = "", area: str = "") -> Row:
    return Row(n=n, kind=kind, role="member", name=name, outcome=outcome, step=step, area=area)


def leave(*more: Row, claims: int = 4) -> Tallies:
    """A leave of a group of three without a conflict: four partitions, two of them released by those that stay."""
    return Tallies(
        (
            count(34 - 4, "zk_op", "getData", step="R6", area="ids"),
            count(4, "zk_op", "getData", step="R8", area="offsets"),
            count(2, "zk_op", "delete", step="R5", area="owners"),
            count(claims, "zk_op", "create", step="R11", area="owners"),
            count(9, "zk_op", "setData", step="R4", area="offsets"),
            count(3, "zk_notified"),
            count(2, "attempt_ended"),
            *more,
        )
    )


def compared(tally: Tallies, design: str = "zookeeper", **parameters: Any) -> dict[str, tuple[int | None, int | None]]:
    row = Row(change="leave", members=2)
    found = counted(design, row, tally, {**PARAMETERS, **parameters}, OWNERS)
    return {each.what: (each.measured, each.model) for each in found}


def test_leave_without_a_conflict() -> None:
    assert compared(leave()) == {"reads": (34, 34), "writes": (6, 6), "notifications": (3, 3)}


def test_claim_too_many_is_seen() -> None:
    assert compared(leave(claims=5))["writes"] == (7, 6)


#: Two more offsets read, one claim made and given back, the other lost and looked at.
CONFLICT = (
    count(1, "attempt_ended", outcome="conflict"),
    count(11, "zk_op", "getData", step="R6", area="ids"),
    count(2, "zk_op", "getData", step="R8", area="offsets"),
    count(1, "zk_op", "create", step="R11", area="owners"),
    count(1, "zk_op", "create", step="R11", area="owners", outcome="NodeExists"),
    count(1, "zk_op", "getData", step="R11", area="owners"),
    count(1, "zk_op", "delete", step="R11", area="owners"),
)


def test_failed_attempts_requests_are_foretold() -> None:
    assert compared(leave(*CONFLICT)) == {"reads": (48, 48), "writes": (9, 9), "notifications": (3, 3)}


@pytest.mark.parametrize(
    ("more", "what"),
    [
        (count(1, "zk_op", "delete", step="R11", area="owners"), "writes"),  # gives back what it never claimed
        (count(1, "zk_op", "getData", step="R11", area="owners"), "reads"),  # looks at what it did not lose
        (count(1, "zk_op", "getData", step="R8", area="offsets"), "reads"),  # more than a member's share
    ],
)
def test_failed_attempt_that_does_too_much_is_seen(more: Row, what: str) -> None:
    measured, foretold = compared(leave(*CONFLICT, more))[what]
    assert measured != foretold


@pytest.mark.parametrize(
    ("tally", "design", "parameters"),
    [
        (leave(count(1, "attempt_ended", outcome="error")), "zookeeper", {}),
        (leave(), "eager", {"streams": 2}),
        (leave(), "cooperative", {}),
    ],
)
def test_nothing_is_foretold_where_the_model_does_not_reach(
    tally: Tallies, design: str, parameters: dict[str, Any]
) -> None:
    assert compared(tally, design, **parameters) == {}
