"""Operations that change metadata and no rows, one a file."""
