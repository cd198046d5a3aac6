"""What clients of Spark Connect ask of a lake's tables by methods, which Spark's planner loses."""
