"""What options take as a quantity with its unit: how often something happens, and how long something lasts."""

from __future__ import annotations

import re
from math import isnan
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import click

if TYPE_CHECKING:
    from collections.abc import Mapping

#: After the point; so a quantity can be printed and read again.
DIGITS = 6
_NUMBER = rf"([0-9]{{1,12}}(?:\.[0-9]{{1,{DIGITS}}})?)"
#: How often a week.
_TIMES: Mapping[str, float] = MappingProxyType({"hour": 168, "day": 7, "week": 1, "month": 12 / 52, "year": 1 / 52})
_SECONDS: Mapping[str, float] = MappingProxyType({"ms": 0.001, "s": 1, "m": 60, "h": 3600})


class Number(click.FloatRange):
    """A number between bounds, which `nan` is not."""

    def convert(self, value: Any, parameter: click.Parameter | None, context: click.Context | None) -> float:
        number = super().convert(value, parameter, context)
        if isnan(number):
            self.fail(f"{value!r} is not a number", parameter, context)
        return number


class Frequency(click.ParamType[float]):
    """`40/day` as 280 a week; only 0 needs no unit."""

    name = "NUMBER/UNIT"
    _form = re.compile(rf"{_NUMBER}/({'|'.join(_TIMES)})")

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> float:
        if str(value) == "0":
            return 0.0
        match = self._form.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is not a number with /{', /'.join(_TIMES)}, such as 40/day", parameter, context)
        return round(float(match[1]) * _TIMES[match[2]], DIGITS)


class Seconds(click.ParamType[float]):
    """`2s` or `500ms` in seconds."""

    name = "TIME"
    _form = re.compile(rf"{_NUMBER}({'|'.join(_SECONDS)})")

    def convert(self, value: object, parameter: click.Parameter | None, context: click.Context | None) -> float:
        match = self._form.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is not a time with {', '.join(_SECONDS)}, such as 2s", parameter, context)
        return round(float(match[1]) * _SECONDS[match[2]], DIGITS)
