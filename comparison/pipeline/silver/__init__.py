"""Silver: what each part of a run's tables says by itself, reduced where it stands, so that little has to travel."""
