"""Assignment strategies: pure functions over the whole group, with one signature (see `subscription`)."""
