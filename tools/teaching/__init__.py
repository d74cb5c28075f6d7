"""What teachers need: their tools, which learners do not meet."""
