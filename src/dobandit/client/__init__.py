"""Experiments behind an address: the words, the answers and the errors of the local ones, over HTTP."""
