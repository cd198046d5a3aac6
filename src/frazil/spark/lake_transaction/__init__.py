"""One transaction over several tables of a lake, by methods and by statements."""
