"""The broker's side, as it does: the partitions that a broker leads, their logs, timers and replies; the handlers."""
