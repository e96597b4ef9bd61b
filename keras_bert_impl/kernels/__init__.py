"""What a backend does better by an operation of its own, one operation a file."""
