"""Child processes of a run, brokers and members: how they start, take commands and end."""
