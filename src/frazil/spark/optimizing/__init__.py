"""Self-optimizing: chosen upkeep is done, once or on a schedule."""
