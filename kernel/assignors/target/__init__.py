"""The assignors of the `consumer` design's coordinator (KIP-848): `uniform` and `range`, as in Kafka 4.1.1.

They compute a group's target assignment from arrays (`group`): `uniform` where all members subscribe alike, `mixed`
where they do not, `ranges` in both cases. `registry` has them by name.
"""
