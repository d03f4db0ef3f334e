"""A run's `run.json`: its names, and the trace files that were opened."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

import msgspec

from kernel.errors import UserError
from kernel.platform.json_file import read_json

if TYPE_CHECKING:
    from collections.abc import Mapping

    from kernel.platform.places import Place

RUN_FILE = "run.json"


class ListedFile(NamedTuple):
    """A trace file that was opened: its name, and the process that writes it."""

    file: str
    process: str
    role: str


class RunFile(NamedTuple):
    """The part of a `run.json` that an analysis needs; `traces` is None without a list."""

    run: str
    scenario: str
    design: str
    seed: int
    traces: tuple[ListedFile, ...] | None
    parameters: str = ""  #: all but the seed, as JSON with sorted keys: equal text, equal parameters


def run_file(run_dir: Place) -> RunFile | None:
    """A run's `run.json`; None if there is none.

    Raises `UserError` if the file exists but cannot be read, or is damaged.
    """
    path = run_dir / RUN_FILE
    try:
        read = read_json(path, _Listing)
        parameters = _without_seed(read_json(path, _Given).parameters)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UserError(f"cannot read {path}: {error.strerror}") from error
    listed = None if read.traces is None else tuple(ListedFile(*msgspec.structs.astuple(each)) for each in read.traces)
    return RunFile(read.run, read.scenario, read.design, read.parameters.seed, listed, parameters)


def _without_seed(parameters: Mapping[str, Any]) -> str:
    others = {name: value for name, value in parameters.items() if name != "seed"}
    return msgspec.json.encode(others, order="deterministic").decode() if others else ""


class _ListedTrace(msgspec.Struct):
    file: str
    process: str
    role: str


class _Parameters(msgspec.Struct, frozen=True):
    seed: Annotated[int, msgspec.Meta(ge=-(1 << 63), le=(1 << 63) - 1)] = 0


class _Given(msgspec.Struct):
    parameters: dict[str, Any] = {}


class _Listing(msgspec.Struct):
    run: str = ""
    scenario: str = ""
    design: str = ""
    parameters: _Parameters = _Parameters()
    traces: tuple[_ListedTrace, ...] | None = None
