"""The tables of `zookeeper-consumer.md` that need no run: which options change the rebalance table of `zkconsumer`, and
those beside the figures of offsets.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from docs.generators.offset_picture import life_table, names_table
from docs.generators.pages import DOCS, filled, markdown_table
from zkconsumer.rebalance.config import RebalanceConfig
from zkconsumer.rebalance.table import table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from zkconsumer.rebalance.state import RebalanceState
    from zkconsumer.rebalance.steps import Step

PAGE = DOCS / "zookeeper-consumer.md"
ORIGINAL = RebalanceConfig(group="g", consumer_id="c")
#: The settings that change the table, as the page names them.
OPTIONS: Mapping[str, RebalanceConfig] = {
    "`fix.claim.before.offsets`": replace(ORIGINAL, claim_before_offsets=True),
    "`fix.checked.release`": replace(ORIGINAL, checked_release=True),
    "`fix.checked.claim`": replace(ORIGINAL, checked_claim=True),
    "`fix.commit.fence=epoch`": replace(ORIGINAL, fence_epochs=True),
    "`fix.sync.before.reads`": replace(ORIGINAL, sync_before_reads=True),
    "`fix.skip.unreadable.members`": replace(ORIGINAL, skip_unreadable_members=True),
    "`offsets.storage=kafka` (without dual commit)": replace(ORIGINAL, offsets_from=frozenset({"kafka"})),
    "`kafka.release=1.1`": replace(ORIGINAL, release="1.1"),
    "`roundrobin.release=1.1`": replace(ORIGINAL, strategy="roundrobin-1.1"),
    "`rebalance.listener.in.attempt`": replace(ORIGINAL, listener_in_attempt=True),
}


def places() -> Mapping[str, str]:
    return {"rebalance-options": options(), "offset-names": names_table(), "offset-life": life_table()}


def files() -> Mapping[Path, str]:
    return {PAGE: filled(PAGE, places())}


def options() -> str:
    """What each option adds to the table, drops from it and changes in it."""
    original = table(ORIGINAL)
    rows = []
    for setting, config in OPTIONS.items():
        changed = table(config)
        added = [
            f"{step.number} {_name(state)}: {_requests(step)}"
            for state, step in changed.items()
            if state not in original
        ]
        dropped = [_name(state) for state in original if state not in changed]
        common = [state for state in original if state in changed]
        different = [_name(state) for state in common if original[state] != changed[state]]
        moved = "" if common == [state for state in changed if state in original] else "R8, R9 come after R11"
        rows.append((setting, "<br>".join(added), ", ".join(dropped), ", ".join(different), moved))
    return markdown_table(("option", "adds", "drops", "changes", "moves"), rows)


def _requests(step: Step) -> str:
    """What is sent to ZooKeeper, or, for a step that sends nothing there, what it does instead."""
    return step.requests.removeprefix("none: ")


def _name(state: RebalanceState) -> str:
    return f"`{state.name}`"
