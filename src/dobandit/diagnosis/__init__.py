"""Whether rounds bear out what a learner assumes: its predictions, its links, its weights, its graph."""
