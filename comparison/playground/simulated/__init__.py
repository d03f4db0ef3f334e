"""A game in simulated worlds, under virtual time: it can stand still, go slower and faster, and go back."""
