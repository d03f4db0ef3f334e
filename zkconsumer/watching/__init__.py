"""Reads of ZooKeeper that leave watches, and the delivery of changes to their listeners."""
