"""What a teacher makes of the chapters."""
