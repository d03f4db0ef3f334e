"""What both backends are built on. Nothing here knows how a group distributes its partitions."""
