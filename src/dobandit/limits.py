"""How much a file or a problem may ask for: a hostile one meets one of these before it meets the memory's end.

They are read at each use (`limits.MAX_EDGES`), so that a program that trusts its files can raise them.
"""

from __future__ import annotations

MAX_BYTES = 64 * 2**20  # of a file, or characters of a text
MAX_DEPTH = 64  # brackets within brackets
MAX_NODES = 1_000_000
MAX_EDGES = 5_000_000  # also bounds `{a b ...} -> {c d ...}`, which is short to write and long to expand
MAX_SQUARES = 2**26  # numbers in a matrix of causes by causes for every node, of which a learner keeps several
MAX_ACTIONS = 20_000  # that a policy looks at one by one; CausalUCB searches where there are more
MAX_EXACT_WORK = 2**26  # table entries of a greedy step that may be exact: some 3 seconds
MAX_NAME = 1_000  # characters of one name
MAX_NAMES = 2**24  # characters of all names together, since sorting them in natural order takes them apart
DIAGNOSIS_SECONDS = 3.0  # that a recommendation waits for the diagnosis, unless one might stop
