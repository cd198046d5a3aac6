"""Self-optimizing: chosen maintenance is done, once or on a schedule."""
