"""A game that was played as a scenario that can be run again: the steps of what was clicked, with their times."""
