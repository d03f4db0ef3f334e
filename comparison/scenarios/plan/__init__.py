"""The plan of a run, as data: the catalogue and its steps, consumers, settings, and checks that it can work."""
