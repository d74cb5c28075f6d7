"""A training run that is operated: evaluations, interrupts, resuming, several processes."""
