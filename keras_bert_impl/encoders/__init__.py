"""What the encoders of all families share."""
