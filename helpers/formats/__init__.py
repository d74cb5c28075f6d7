"""Models and tokenizers in files: ours, and those of other programs."""
