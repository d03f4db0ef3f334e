"""Bronze: from trace files to typed tables of events, one for each kind, with nothing dropped."""
