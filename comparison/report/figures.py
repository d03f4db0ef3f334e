"""Which figures both reports show, in which order, under which labels, and how numbers are formatted.

Reads the plain mapping that result.json holds; no Spark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

#: The version of the result that the reports know; a later one may lack figures shown here.
SCHEMA_VERSION = 7

EXPECTED, UNKNOWN, NOT_EXPECTED = "as expected", "unknown", "not as expected"
NOT_APPLICABLE = "not applicable"
MARKS = {EXPECTED: "+", UNKNOWN: "?", NOT_EXPECTED: "!", NOT_APPLICABLE: "-"}
KINDS = {"promise": "promise", "history": "history", "model": "count"}

#: Rows of every scenario's table: the name in the result, and the label. An indented row is part of the one above it.
ROWS: tuple[tuple[str, str], ...] = (
    ("converge_ms", "settled after, ms (worst)"),
    ("unowned_partition_s", "unowned, partition-s"),
    ("stalled_s", "nothing delivered, s"),
    ("left_unnamed", "partitions without an owner at the end"),
    ("double_owned_partition_s", "claimed by two, partition-s"),
    ("two_delivering_partition_s", "two delivering, partition-s"),
    ("stopped", "partitions stopped"),
    ("stopped_kept", "  and given back"),
    ("moved", "partitions moved"),
    ("moved_minimum", "  minimum"),
    ("balance", "most partitions less fewest"),
    ("lag_before", "lag when members were added"),
    ("lag_record_s", "  from then on, record-s"),
    ("dip_records", "records fewer, at most"),
    ("break_even_s", "  made up for after, s"),
    ("rounds", "rebalances of the group"),
    ("rebalances", "rebalances of members"),
    ("rebalances_failed", "  given up"),
    ("attempts", "  attempts"),
    ("attempts_failed", "  failed"),
    ("notifications", "notifications"),
    ("zk_reads", "ZooKeeper reads"),
    ("zk_reads_failed", "  failed"),
    ("zk_writes", "ZooKeeper writes"),
    ("zk_writes_failed", "  failed"),
    ("group_requests", "join, sync and leave requests"),
    ("heartbeats", "heartbeats"),
    ("commit_requests", "commits sent"),
    ("fetches", "fetches"),
    ("delivered", "records delivered"),
    ("duplicates", "  delivered again"),
    ("lost", "  lost"),
    ("out_of_order", "polls out of order"),
    ("stale_deliveries", "delivered by a non-owner"),
    ("stale_writes", "commits by a non-owner"),
    ("moved_back", "offsets moved back"),
    ("started_behind", "started behind a commit"),
    ("fenced", "commits fenced"),
    ("dropped", "commits dropped by their sender"),
    ("bystander_get_before_p50_ms", "bystander's get before, ms"),
    ("bystander_get_before_p99_ms", "  99th percentile"),
    ("bystander_get_during_p50_ms", "bystander's get during, ms"),
    ("bystander_get_during_p99_ms", "  99th percentile"),
    ("bystander_set_before_p50_ms", "bystander's set before, ms"),
    ("bystander_set_before_p99_ms", "  99th percentile"),
    ("bystander_set_during_p50_ms", "bystander's set during, ms"),
    ("bystander_set_during_p99_ms", "  99th percentile"),
)
_OF_BYSTANDERS = tuple(name for name, _ in ROWS if name.startswith("bystander_"))
#: Rows that are always shown; others only if a design has a value other than 0.
_ALWAYS = frozenset(
    {"converge_ms", "unowned_partition_s", "two_delivering_partition_s", "delivered", "duplicates", "lost"}
)
#: Figures that depend only on the changes made, not on their timing or the length of the run.
_DECIDED = frozenset({"rounds", "stopped", "stopped_kept", "moved", "moved_minimum", "balance", "group_requests"})
#: Figures that depend on the phase of the timers, on races and on the machine: one run shows one draw of them.
_DRAWN = frozenset(
    {
        "converge_ms",
        "unowned_partition_s",
        "stalled_s",
        "double_owned_partition_s",
        "two_delivering_partition_s",
        "rebalances",
        "attempts",
        "lag_record_s",
        "dip_records",
        "break_even_s",
        "duplicates",
        *_OF_BYSTANDERS,
    }
)
#: With fewer repeats than these a median is no better than a draw.
REPEATS_MIN = 3
#: Changes that only bring the group to the size to be measured.
_GROWTH = ("form", "grow")
#: Changes whose cost is already in the table of figures.
_WHOLE_RUN = ("mass-start",)
#: Columns of a change's row in addition to its exact counts: the name in the result, and the heading.
CHANGE_COLUMNS = (
    ("converge_ms", "ms"),
    ("rounds", "rounds"),
    ("stopped", "stopped"),
    ("moved", "moved"),
    ("unowned_partition_s", "unowned, s"),
)

Run = dict[str, Any]


def check_version(result: Mapping[str, Any]) -> None:
    """Raise ValueError if the result has a version that the reports do not know."""
    version = result["schema_version"]
    if version != SCHEMA_VERSION:
        what = "use the version that wrote it" if version > SCHEMA_VERSION else "this program reads newer results only"
        raise ValueError(
            f"the result has schema version {version}, this program knows {SCHEMA_VERSION}. Analyse the run again, "
            f"or {what}"
        )


def runs_of(scenario: Mapping[str, Any], result: Mapping[str, Any]) -> list[Run]:
    return [result["runs"][number] for number in scenario["runs"]]


def circumstances(runs: Sequence[Mapping[str, Any]]) -> str:
    """The settings that all designs shared."""
    parameters = runs[0]["parameters"]
    named = [
        f"{parameters[name]} {name.removesuffix('s') if parameters[name] == 1 else name}"
        for name in ("members", "partitions", "brokers")
        if parameters.get(name) is not None
    ]
    seeds = sorted({seed for run in runs for seed in run.get("seeds", [run["seed"]])})
    repeats = max(len(run.get("seeds", ())) for run in runs)
    repeated = [f"{repeats} repeats"] if repeats else []
    rate = [f"{parameters['rate']:g} records/s"] if "rate" in parameters else []
    preset = [str(parameters["preset"])] if "preset" in parameters else []
    if parameters.get("session_timeout_ms"):
        preset.append(f"sessions of {parameters['session_timeout_ms']} ms")
    return ", ".join([*named, *rate, *preset, *repeated, f"seed {_ranges(seeds)}"])


def _ranges(seeds: Sequence[int]) -> str:
    """`1, 2`, or `1-10` for a longer sequence."""
    in_a_row = len(seeds) > 2 and seeds == list(range(seeds[0], seeds[0] + len(seeds)))
    return f"{seeds[0]}-{seeds[-1]}" if in_a_row else ", ".join(map(str, seeds))


def warnings_of(runs: Sequence[Mapping[str, Any]]) -> list[str]:
    """The warnings about these runs' settings, each once."""
    return list(dict.fromkeys(str(warning) for run in runs for warning in run["parameters"].get("warnings", [])))


def metric_rows(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str, list[float | None]]]:
    """The name, label and values by design of each metric worth showing."""
    for name, label in ROWS:
        values = [run["metrics"].get(name) for run in runs]
        if name in _ALWAYS or any(values):
            yield name, label, values


def changes_shown(run: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """The membership changes measured one by one, except growth without exact counts."""
    return [
        change
        for change in run["changes"]
        if change["members"] is not None and (change["counted"] or change["change"] not in (*_GROWTH, *_WHOLE_RUN))
    ]


def by_change(runs: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, list[tuple[str, Mapping[str, Any]]]]]:
    """All designs' changes, grouped by name and round, in the order in which they were made."""
    shown = [(run["design"], change) for run in runs for change in changes_shown(run)]
    for key in dict.fromkeys((change["change"], change["round"]) for _, change in shown):
        rows = [(design, change) for design, change in shown if (change["change"], change["round"]) == key]
        yield named(rows[0][1]), rows


def named(change: Mapping[str, Any]) -> str:
    """`join to 5`, or `restart 2` for a restart."""
    if change["change"] == "restart":
        return f"restart {change['round']}"
    return f"{change['change']} to {change['members']}"


def ending(run: Mapping[str, Any]) -> str:
    """How an incomplete run ended, with its error; '' for a complete one."""
    if run["outcome"] == "complete":
        return ""
    ends = {"failed": "the run failed", "interrupted": "the run was interrupted"}
    error = f": {run['error']}" if run["error"] else ""
    return ends.get(run["outcome"], "the run was cut short") + error


def evidence(overlap: Mapping[str, Any]) -> str:
    """The first overlap, in words."""
    doing = "delivered" if overlap["view"] == "delivering" else "claimed"
    owners = " and ".join(owner.partition("/")[0] for owner in overlap["owners"])
    return (
        f"first overlap: {owners} {doing} {overlap['topic']}-{overlap['partition']}, "
        f"{overlap['from_ms']:.0f}-{overlap['until_ms']:.0f} ms"
    )


def inapplicable(result: Mapping[str, Any]) -> dict[tuple[str, str], str]:
    """Why a scenario was not run under a design, by (scenario, design)."""
    return {(each["scenario"], each["design"]): each["reason"] for each in result["not_applicable"]}


def number(value: float | None, *, whole: bool = False) -> str:
    """Format a number briefly, the same way everywhere; None is a dash."""
    if value is None:
        return "-"
    if value == int(value) or whole or abs(value) >= 1000:
        return f"{value:,.0f}"
    return f"{value:.2f}" if abs(value) < 100 else f"{value:.1f}"


def counted_noun(count: Mapping[str, Any]) -> str:
    """A count with its noun, which is given in the plural."""
    what: str = count["what"]
    return f"{number(count['measured'])} {what.removesuffix('s') if count['measured'] == 1 else what}"


def ratio(name: str, run: Mapping[str, Any], base: Mapping[str, Any]) -> str:
    """A figure as a multiple of the base's; '' where that does not compare the designs.

    Counts that follow from the change compare as they are. Times, and what depends on the phase at which a change came,
    are one random draw each: they compare as medians of several repeats under the same timers. Totals of runs of
    different length do not compare.
    """
    value, other = run["metrics"].get(name), base["metrics"].get(name)
    if value is None or not other:
        return ""
    drawn = name in _DRAWN and _repeats(run) >= REPEATS_MIN <= _repeats(base) and _timers(run) == _timers(base)
    return f"{value / other:.2f}x" if name in _DECIDED or drawn else ""


def _repeats(run: Mapping[str, Any]) -> int:
    return len(run.get("seeds", (run["seed"],)))


def _timers(run: Mapping[str, Any]) -> object:
    """How long the group waits for a silent member, and for a slow one."""
    timers = run["parameters"].get("timers", {})
    return timers.get("session_ms"), timers.get("max_poll_ms")
