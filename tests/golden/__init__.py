"""Goldens: answers of the whole library on fixed problems and seeds, recorded as JSON and compared with 1e-9."""
