"""What groups commit: committed and pending offsets, transactions, and when offsets expire."""
