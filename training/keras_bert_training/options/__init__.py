"""The options of each command, in a module of its name: `keras-bert` parses them before it imports Keras."""
