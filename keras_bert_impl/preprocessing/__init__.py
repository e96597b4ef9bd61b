"""From what a user passes to `fit` to batches of rows."""
