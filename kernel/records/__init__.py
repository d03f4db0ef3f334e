"""Record batches: their bytes, checks before they are stored, and what clients read from them."""
