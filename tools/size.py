"""Print how large the package and its tests are, and the ten largest modules: `make size`."""

from pathlib import Path

ROOT = Path(__file__).parents[1]
LARGEST = 10


def lines_by_module(folder: str) -> dict[str, int]:
    paths = sorted((ROOT / folder).rglob("*.py"))
    return {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in paths}


def main() -> None:
    source, tests = lines_by_module("src"), lines_by_module("tests")
    print(f"src    {sum(source.values()):7,} lines  {len(source):4} modules")
    print(f"tests  {sum(tests.values()):7,} lines  {len(tests):4} modules")
    print(f"\nthe {LARGEST} largest modules of src")
    for module in sorted(source, key=lambda name: -source[name])[:LARGEST]:
        print(f"{source[module]:5}  {module}")


if __name__ == "__main__":
    main()
