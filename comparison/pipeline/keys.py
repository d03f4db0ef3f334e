"""What measured values are found by: views, windows, and phases that are no phase of one design.

They stand apart from what measures, which loads NumPy and Arrow: whoever only reads the values needs neither.
"""

from __future__ import annotations

#: The five lines that are swept: three of ownership over time, two of records over their numbers.
BELIEVED, AUTHORITY, DELIVERING = "believed", "authority", "delivering"
SERIALS, OFFSETS = "serials", "offsets"
OVER_TIME = (BELIEVED, AUTHORITY, DELIVERING)

#: The number of the window that is the whole run; changes count from 0.
WHOLE_RUN = -1
#: The change that brings a group to the size to be measured; it is not measured itself.
FORMING = "form"

#: How an attempt to rebalance ended, as in the trace: it claimed everything, or met another member's claim.
OK, CONFLICT = "ok", "conflict"

#: The pseudo phase that is a whole rebalance, from its start to its end.
WHOLE = "rebalance"
#: The outcome of a run that went to its end.
COMPLETE = "complete"
