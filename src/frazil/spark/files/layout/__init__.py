"""How the columns of each file are stored."""
