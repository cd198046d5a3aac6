"""What others committed meanwhile, and whether it contradicts an operation."""
