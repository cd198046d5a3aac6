"""Where table pointers live, and how one is swapped."""
