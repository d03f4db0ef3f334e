"""The rebalance, as decisions: `machine.step(rebalance, event)` returns the new state and the effects to perform.

Pure: no module here reads a clock, opens a socket or waits. `member.executor` performs the effects.
"""
