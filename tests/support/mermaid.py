"""The part of Mermaid's syntax that our diagrams use."""

from __future__ import annotations

import re

#: What a line of a sequence diagram may be; the text behind the colon has none of Mermaid's own signs.
_TEXT = r"(?:[^#;<>{}\"\\%]|#\d+;|<br/>)+"
SEQUENCE = re.compile(
    rf"sequenceDiagram|    participant \w+ as {_TEXT}|    Note over \w+: {_TEXT}"
    rf"|    \w+(?:->>|-->>|-x|--\))\w+: {_TEXT}"
)
#: A bar or a section of a gantt chart; the groups are the bar's beginning and end.
GANTT = re.compile(r"    section [^:;#,]+|    [^:;#,]+ :(?:crit|done|active), (\d+), (\d+)")
