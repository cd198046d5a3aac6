"""Files that other writers left in folders: their partitions, and what a table makes of them."""
