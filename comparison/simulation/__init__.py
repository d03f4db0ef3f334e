"""The same brokers, members and producers in one process, under virtual time: repeatable to the byte."""
