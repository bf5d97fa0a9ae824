"""Record the goldens anew: `python tests/golden/record.py [group ...]`. Look at the difference before you commit it."""

import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from golden.cases import GROUPS, answered
from golden.comparing import write


def main(groups: list[str]) -> None:
    warnings.simplefilter("ignore")
    for group in groups or GROUPS:
        start = time.perf_counter()
        path = write(group, {name: answered(group, name) for name in GROUPS[group]()})
        print(f"{group}: {path.stat().st_size / 1000:.0f} kB in {time.perf_counter() - start:.1f} s")


if __name__ == "__main__":
    main(sys.argv[1:])
