"""Which set is best: oracles return the set with its value, a bound, and whether it is proved optimal."""
