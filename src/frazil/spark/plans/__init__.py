"""Plans of Spark's parser: the relations in them, and what stands in their places."""
