"""What assignment strategies give a group on paper, and what they move when it changes: `rebalance-lab assign`. Pure.

`notation` and `group_file` read a group (`group`) and the changes of it; `strategies` assigns as real members and
leaders would; `rehearsal` goes through the changes with each strategy; `figures` counts, and `minimum` says what the
fewest moves would have been.
"""
