"""The commands of `keras-bert` besides training, one in each file."""
