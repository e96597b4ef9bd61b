"""The commands of `keras-bert` that are no training: one a file."""
