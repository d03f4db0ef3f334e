"""Child processes of a run: brokers and members, how they start, what they are told, how they end."""
