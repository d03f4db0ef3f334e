"""What is said of a figure: its unit and meaning, its row in the reports, and when it compares designs."""

from __future__ import annotations

from enum import Enum, auto

import msgspec


class Meaning(msgspec.Struct, frozen=True):
    """What a figure means; the unit is the last word of its name."""

    unit: str
    meaning: str


class Compares(Enum):
    """When a figure says something as a multiple of another design's."""

    NEVER = auto()  #: a total of the run, whose length differs between designs
    ALWAYS = auto()  #: it depends only on the changes made, not on their timing or the length of the run
    #: It depends on the phase of the timers, on races and on the machine: one run shows one draw of them.
    AS_MEDIAN = auto()


class Of(Enum):
    """The part of a run that a figure is of."""

    RUN = "run"  #: whole, the group's forming included
    STRETCH = "measured stretch"  #: from the first steady stage, change or fault until the members are stopped
    CHANGES = "changes"  #: those in the measured stretch, each until the next one


class Glance(Enum):
    """Whether a figure stands in the table that a report begins with. The less it is, the better."""

    NEVER = auto()
    PRICE = auto()  #: what a change costs; always
    ANY = auto()  #: as PRICE, but only if a design has a value other than 0
    HARM = auto()  #: as ANY, and 0 is what it should be: any is worse than none, whatever else differs


class Metric(Meaning, frozen=True):
    """A figure of a run."""

    label: str = ""  #: of its row in the reports, with a unit of its own after a comma; '' where it has none
    compares: Compares = Compares.NEVER
    of: Of = Of.RUN
    is_part: bool = False  #: of the row above it
    is_always_shown: bool = False  #: others only if a design has a value other than 0
    glance: Glance = Glance.NEVER
    #: False: it grows with the length of the run, or is given by the scenario, or counts what protected the group.
    more_is_worse: bool = True


class ChangeMetric(Meaning, frozen=True):
    """A figure of one change."""

    heading: str = ""  #: of its column in the reports; '' where it has none
    is_spread: bool = False  #: over repeats
