"""A Spark session whose own methods understand names of lakes."""
