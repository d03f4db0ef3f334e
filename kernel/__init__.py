"""What both backends stand on. Nothing here knows how a group shares out its partitions."""
