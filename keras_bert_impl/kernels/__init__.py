"""Operations for which a backend has a faster kernel of its own, one file each."""
