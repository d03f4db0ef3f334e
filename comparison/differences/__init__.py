"""What differs between two results of the same scenarios and designs: decided from the results alone.

Two runs are a pair if they are of the same scenario in the same design. `compared` makes the whole document, from
`figures`, `verdicts` and `circumstances`; `bounds` says what of it is worse than a user allows.
"""
