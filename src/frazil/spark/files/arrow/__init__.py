"""Files that Arrow reads on the executors."""
