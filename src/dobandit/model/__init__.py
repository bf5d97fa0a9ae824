"""Models of a world: probabilities by weights and links or by tables, exact inference, sampling, and model files."""
