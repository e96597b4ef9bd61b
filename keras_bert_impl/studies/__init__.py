"""Repeats the ablation studies of the papers: their rows, their runs in turn, their tables and pictures."""
