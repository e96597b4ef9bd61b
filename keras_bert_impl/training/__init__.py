"""Pre-training, fine-tuning and data preparation as a library; recipes."""
