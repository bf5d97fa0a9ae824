"""What causes what: causal graphs, their file formats, and the removal of hidden variables."""
