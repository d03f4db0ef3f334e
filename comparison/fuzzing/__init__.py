"""Random schedules of faults and changes, judged by what every design promises, and shrunk."""
