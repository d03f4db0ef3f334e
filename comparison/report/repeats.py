"""Several repeats in one table column per design: medians, their ranges, and the worst run's verdict.

Reads the plain mapping that result.json holds; no Spark. A run without repeats is shown as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from comparison.report.figures import Run, number, runs_of

if TYPE_CHECKING:
    from collections.abc import Mapping


def columns_of(scenario: Mapping[str, Any], result: Mapping[str, Any]) -> list[Run]:
    """The scenario's runs, one per design; of repeats, the worst run with the medians of all."""
    several = {(each["scenario"], each["design"]): each for each in result["repeated"]}
    shown: dict[tuple[str, str], Run] = {}
    for run in runs_of(scenario, result):
        key = (run["scenario"], run["design"])
        if key not in shown:
            shown[key] = _together(several[key], result) if key in several else run
    return list(shown.values())


def _together(repeated: Mapping[str, Any], result: Mapping[str, Any]) -> Run:
    runs = [result["runs"][place] for place in repeated["runs"]]
    worst: Run = result["runs"][repeated["worst"]]
    spreads = {(each["change"], each["round"]): each["figures"] for each in repeated["changes"]}
    changes = [_changed(change, spreads[change["change"], change["round"]]) for change in worst["changes"]]
    medians = {name: spread and spread["median"] for name, spread in repeated["metrics"].items()}
    return {
        **worst,
        "metrics": medians,
        "changes": changes,
        "bystanders": repeated["bystanders"],
        "spreads": repeated["metrics"],
        "seeds": [run["seed"] for run in runs],
        "outcomes": [run["verdict"] for run in runs],
    }


def _changed(change: Mapping[str, Any], figures: Mapping[str, Any]) -> dict[str, Any]:
    medians = {name: spread["median"] for name, spread in figures.items() if spread is not None}
    return {**change, **medians, "spreads": figures}


def seeds_of(run: Mapping[str, Any]) -> list[int]:
    return list(run.get("seeds", [run["seed"]]))


def repeats_of(run: Mapping[str, Any]) -> int:
    return len(seeds_of(run))


def spread_of(shown: Mapping[str, Any], name: str, *, whole: bool = False) -> str:
    """A figure's range over the repeats, as `310-1,204`; '' if it has none."""
    spread = shown.get("spreads", {}).get(name)
    if spread is None or spread["low"] == spread["high"]:
        return ""
    return f"{number(spread['low'], whole=whole)}-{number(spread['high'], whole=whole)}"


def repeat_summary(run: Mapping[str, Any]) -> str:
    """The repeats' verdicts, and which run's reasons are shown; '' without repeats."""
    if repeats_of(run) == 1:
        return ""
    outcomes = run["outcomes"]
    counts = ", ".join(f"{outcomes.count(each)} {each}" for each in dict.fromkeys(sorted(outcomes)))
    return f"{len(outcomes)} repeats: {counts}; shown below: seed {run['seed']}"
