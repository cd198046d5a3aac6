"""A scan plan becomes a DataFrame, a DataFrame becomes data files."""
