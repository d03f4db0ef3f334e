"""Record batches: their bytes, what is checked before they are stored, and what clients read in them."""
