"""Operations that make a snapshot, one a file."""
