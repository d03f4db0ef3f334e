"""The broker's side, acting: the partitions that a broker leads, their logs, timers and replies; the handlers."""
