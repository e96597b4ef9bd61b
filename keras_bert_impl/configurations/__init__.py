"""What is known about encoders before one is built: configurations, families, how weights begin."""
