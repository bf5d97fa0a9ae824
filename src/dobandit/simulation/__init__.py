"""Policies against models: many seeded runs, their regret, and the paper's experiments."""
