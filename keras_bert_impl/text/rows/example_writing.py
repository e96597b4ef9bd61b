"""Empty; to be removed."""
