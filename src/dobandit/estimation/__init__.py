"""What the data say: statistics of each node, estimates of its weights, and how far to trust them."""
