"""Large groups by the deciding modules alone: the coordinator's machine and its members, with counted messages.

The same state machines run as in every run: `coordinator.groups`, `coordinator.membership`, the assignors, the leader's
work. What performs their effects is here, on a heap of events: a request is a value that arrives after a delay of its
link, drawn from the seed as in a simulated world, and is counted. There are no frames, no sockets, no records and no
trace, so that a hundred thousand members fit. Left out with them: producing and fetching, and so commits; refreshes of
metadata; a second broker.

`tests/comparison/simulation/deciding` holds the counts against runs of everything.
"""
