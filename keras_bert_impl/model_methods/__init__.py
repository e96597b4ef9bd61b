"""What every model here does otherwise than `keras.Model`."""
