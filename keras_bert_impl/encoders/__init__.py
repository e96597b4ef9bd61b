"""Encoders, one family a file."""
