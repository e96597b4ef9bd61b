"""Fine-tuning tasks, one family a file: how its files are read, scored and written."""
