"""The API reference: a page per package with every public name, from the docstrings in the sources."""

from __future__ import annotations

from typing import NamedTuple

import dobandit


class Page(NamedTuple):
    """Public names whose modules begin with one of `packages`, and the types that they return (`results`)."""

    title: str
    says: str
    packages: tuple[str, ...]
    results: tuple[str, ...] = ()
    inherited: bool = True  # whether classes list what they have from others


PAGES = {
    "experiments": Page(
        "Live experiments",
        "Ask what to set, tell what was seen. There is a [tutorial](../experiments.md).",
        ("experiment", "rows"),
        (
            "rows.trial.Told",
            "policy.answers.Recommendation",
            "policy.answers.Worth",
            "policy.answers.Observed",
            "experiment.answers.BestObserved",
            "experiment.answers.EdgeEstimate",
            "experiment.explanation.Explanation",
            "experiment.status.Status",
            "diagnosis.diagnose.Diagnosis",
            "storage.contract.Storage",
        ),
    ),
    "data": Page(
        "From data",
        "What a table says, and [what may stand in it](../data.md).",
        ("inspect", "report.ranking_result"),
        ("inspect.node_fits.NodeFit", "report.ranking_result.RankingResult", "inspect.ranking.Ranked"),
    ),
    "graphs": Page(
        "Graphs", "What causes what, and the files it is kept in.", ("graph",), ("graph.latent.Admissibility",)
    ),
    "models": Page("Models", "How strongly: weights, links, tables, and exact expectations.", ("model", "paper")),
    "solving": Page("Best actions", "The best action of a known model, and what is allowed.", ("oracle",)),
    "learners": Page(
        "Learners",
        "Policies: what to try next, and [which one when](../learners.md). All of them have what `Policy` has.",
        ("policy",),
        ("policy.base.Policy", "policy.answers.NodeEstimate", "policy.answers.WeightEstimate"),
        inherited=False,
    ),
    "studies": Page(
        "Studies",
        "Policies against a simulated world, over many runs.",
        ("simulation", "report"),
        ("simulation.find_best.Found", "simulation.result.Difference", "report.figures.Figure"),
    ),
    "client": Page("The service's client", "Experiments behind the service, from Python.", ("client", "service")),
    "errors": Page("Errors", "Every error that is raised on purpose is a `DobanditError`.", ("errors",)),
    "suites": Page(
        "Test suites",
        "What every policy, and every storage, has to keep; for packages of your own.",
        (),
        ("testing.policies.PolicySuite", "testing.storage_suite.StorageSuite"),
    ),
}
# Methods that the parts of an experiment have for each other.
EXPERIMENT = "dobandit.experiment.experiment.Experiment"
INSIDE = ("log",)
ERRORS = (
    "DobanditError",
    "GraphError",
    "ParseError",
    "ModelError",
    "InterventionError",
    "InferenceError",
    "ObservationError",
    "PolicyError",
    "SimulationError",
    "ExperimentError",
    "ConflictError",
    "StorageError",
    "ReportError",
    "DobanditWarning",
)


def placed() -> dict[str, list[str]]:
    """By page, the full names that stand on it: each public name on the page of the longest prefix that fits."""
    found: dict[str, list[str]] = {slug: [] for slug in PAGES}
    for name, module in dobandit._HOME.items():
        inside = module.removeprefix("dobandit.")
        fits = [
            (len(prefix), slug)
            for slug, page in PAGES.items()
            for prefix in page.packages
            if inside == prefix or inside.startswith(prefix + ".")
        ]
        if not fits:
            raise LookupError(f"no page of the API reference is for {module}, where {name} is. Add one to PAGES.")
        found[max(fits)[1]].append(f"{module}.{name}")
    for slug, page in PAGES.items():
        found[slug] += [f"dobandit.{name}" for name in page.results]
    found["models"] += ["dobandit.model.links", "dobandit.paper"]
    found["errors"] = [f"dobandit.errors.{name}" for name in ERRORS]
    return {slug: names for slug, names in found.items() if names}


def pages() -> dict[str, str]:
    """By path below docs/, the text of each page."""
    return {f"api/{slug}.md": _text(PAGES[slug], names) for slug, names in placed().items()}


def navigation() -> list[dict[str, str]]:
    return [{PAGES[slug].title: f"api/{slug}.md"} for slug in placed()]


def _text(page: Page, names: list[str]) -> str:
    blocks = "\n".join(f"::: {name}\n{_options(page, name)}" for name in names)
    return f"# {page.title}\n\n{page.says}\n\n{blocks}"


def _options(page: Page, name: str) -> str:
    lines = [] if page.inherited else ["inherited_members: false"]
    if name == EXPERIMENT:
        lines.append(f'filters: ["!^_", "!^({"|".join(INSIDE)})$"]')
    return "".join(["    options:\n", *(f"      {line}\n" for line in lines)]) if lines else ""
