"""Gold: a run's partitions as a whole: who had them when, what became of the records, whose commits were accepted."""
