"""The machine: processes, ports, files, Python and Java."""
