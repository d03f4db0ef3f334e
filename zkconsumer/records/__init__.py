"""Records on their way to the application: `leaders` and `fetchers` bring them, `chunks` checks them, `streams` queue
them, `iterators` and `delivery` hand them out.
"""
