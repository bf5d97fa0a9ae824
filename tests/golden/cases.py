"""The groups of goldens, each a file of recorded answers."""

import json
from functools import cache
from typing import Any

from golden import learners, live, offline, simulations

GROUPS = {
    "learners": cache(learners.cases),
    "live": cache(live.cases),
    "simulations": cache(simulations.cases),
    "offline": cache(offline.cases),
    "data": cache(offline.data_cases),
}


def answered(group: str, name: str) -> dict[str, Any]:
    """A case's answers of today, as they would be recorded."""
    return json.loads(json.dumps(GROUPS[group]()[name]()))
