"""Encoders, one file per family."""
