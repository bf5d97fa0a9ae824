"""What to try next: one algorithm a file, each a frozen configuration that starts learners."""
