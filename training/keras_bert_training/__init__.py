"""Pre-training, fine-tuning and data preparation as a library, and the recipes."""
