"""Who gets which partition: pure functions over the whole group, one signature (see `subscription`)."""
