"""From text to files of pre-training rows, and NumPy batches of them; `preprocessing.graphs.tf_data` gives the same."""
