"""The part of Mermaid's syntax that our diagrams use."""

from __future__ import annotations

import re

#: A line of a sequence diagram; the text after the colon contains none of Mermaid's special characters.
_TEXT = r"(?:[^#;<>{}\"\\%]|#\d+;|<br/>)+"
SEQUENCE = re.compile(
    rf"sequenceDiagram|    participant \w+ as {_TEXT}|    Note over \w+: {_TEXT}"
    rf"|    \w+(?:->>|-->>|-x|--\))\w+: {_TEXT}"
)
#: A bar or a section of a gantt chart; the groups are the bar's start and end.
GANTT = re.compile(r"    section [^:;#,]+|    [^:;#,]+ :(?:crit|done|active), (\d+), (\d+)")
