"""Commands that simulate: simulate, report, reproduce."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import click

from dobandit.cli import options
from dobandit.cli.output import json_option, print_json, print_table, quiet, say, screen_width, several
from dobandit.errors import SimulationError
from dobandit.policy.registry import NAMES
from dobandit.simulation.result import FILE_NAME, StudyResult
from dobandit.simulation.study import DEFAULTS, Study, study_of
from dobandit.text_files import without_gz

executor_options = options.options_of(
    click.option("--workers", type=click.IntRange(min=1), help="Threads or processes; default: all cores."),
    click.option(
        "--executor",
        default="threads",
        show_default=True,
        help="threads, dask (a local cluster), or the address of a Dask scheduler such as tcp://host:8786.",
    ),
)


def refuse_other_study(folder: str, study: Study) -> None:
    """A finished study is not overwritten by another one."""
    file = Path(folder) / FILE_NAME
    if file.exists() and StudyResult.load(file).study.fingerprint() != study.fingerprint():
        raise SimulationError(f"{file} holds another study. Choose another folder for --out, or remove it.")


@click.command("simulate")
@click.argument("file", type=click.Path())
@options.network_options
@several(
    "--policy",
    "policies",
    metavar="NAME[:KEY=VALUE,...]",
    help=f"A policy: {', '.join(NAMES)}, or one of an installed package; may be repeated. Default: "
    f"{' and '.join(DEFAULTS)}.",
)
@click.option("--rounds", type=click.IntRange(min=1), required=True, help="Rounds of each run.")
@click.option("--replications", type=click.IntRange(min=1), default=100, show_default=True, help="Runs of each policy.")
@options.rule_options
@options.hide_option
@options.link_option(
    "How the learner takes causes to add up: auto, identity, ... Default, for other nodes too: as they do."
)
@options.effects_option("as it is")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--out", type=click.Path(), help="Folder for the saved study, figures and tables.")
@executor_options
@json_option
def simulate_command(
    file: str,
    policies: tuple[str, ...],
    links: tuple[str, ...],
    out: str | None,
    workers: int | None,
    executor: str,
    as_json: bool,
    **given: Any,
) -> None:
    """The policy oracle knows the model. With --out an interrupted study goes on where it stopped when the same command
    is run again.

    \b
    Examples:
      dobandit simulate model.json --policy blm-lr --policy ucb:scale=0.1 --rounds 5000 -k 2
      dobandit simulate model.json --policy bglm-ofu:radius_scale=0.1,initial=50 --policy fixed:set=X3+X4 \\
          --rounds 2000 --replications 200 -k 2 --out study
      dobandit simulate shop.json --policy ucb --rounds 2000 -k 2 --lever price=0,1 --exclusive email,letter
      dobandit simulate shop.json --rounds 2000 -k 2 --link auto --effects any
    """
    from dobandit.report.simulation_result import simulate, study_rules

    model = options.read_world(file, given)
    words = options.rule_words(given)
    rules = study_rules(model, words.pop("budget"), words)
    given |= {"policies": list(policies or DEFAULTS), "links": options.links_of(links, model.structure)}
    if out is not None:
        refuse_other_study(out, study_of(model, rules=rules, **given))
    result = simulate(
        model,
        budget=rules,
        executor=executor,
        workers=workers,
        checkpoint=out,
        progress=not quiet(as_json),
        name=without_gz(file).stem,
        **given,
    )
    if out is not None:
        result.save(out)
        result.report(out)
    if as_json:
        print_json(result.summary().to_document())
        return
    click.echo(result.summary().text(screen_width()))
    if out is not None:
        click.echo()
        say(f"saved to {out}: study.npz, report.html, regret.png, summary.md")


@click.command("report")
@click.argument("folder", type=click.Path())
@click.option("--out", type=click.Path(), help="Where to write; default: into FOLDER.")
@json_option
def report_command(folder: str, out: str | None, as_json: bool) -> None:
    """\b
    Examples:
      dobandit report study
      dobandit report study --out pictures --json
    """
    from dobandit.report.simulation_result import load_result

    result = load_result(folder)
    home = out or (folder if Path(folder).is_dir() else str(Path(folder).parent))
    files = result.report(home)
    if as_json:
        print_json({"files": [str(path) for path in files.values()], **result.summary().to_document()})
        return
    click.echo(result.summary().text(screen_width()))
    click.echo()
    say(f"wrote {', '.join(files)} to {home}")


@click.command("reproduce")
@click.argument("graphs", nargs=-1, metavar="[G1 G2 G3 G4 G5]")
@click.option("--replications", type=click.IntRange(min=1), default=600, show_default=True, help="Runs of each policy.")
@click.option("--seed", type=click.IntRange(min=0), default=0, show_default=True)
@click.option("--out", type=click.Path(), default="results", show_default=True, help="Folder for figures and tables.")
@click.option("--beyond", is_flag=True, help="Add our learners, those with a guarantee, and worlds that do not fit.")
@executor_options
@json_option
def reproduce_command(
    graphs: tuple[str, ...],
    replications: int,
    seed: int,
    out: str,
    beyond: bool,
    workers: int | None,
    executor: str,
    as_json: bool,
) -> None:
    """Writes a figure and the graph's picture for each, and summary.md, summary.json and report.html with a table
    beside the published values. --beyond adds CausalUCB and CausalTS on the same random numbers, learners whose regret
    is guaranteed (in the first 10 runs: they are slow), and four worlds that do not fit the paper's model.

    \b
    Examples:
      dobandit reproduce
      dobandit reproduce G1 G4 --replications 60 --out quick
      dobandit reproduce --beyond --replications 100 --out beyond
    """
    from dobandit import paper
    from dobandit.report.html import report_folder
    from dobandit.report.simulation_result import shown_progress
    from dobandit.report.study_report import reproduction_document, write_reproduction
    from dobandit.simulation.reproduce import WORLDS, guaranteed_study, paper_study, world_study
    from dobandit.simulation.simulate import executor_of, run_study

    names = [name.upper() for name in dict.fromkeys(graphs)] or list(paper.MODELS)
    studies = {name: paper_study(name, replications, seed, beyond) for name in names}
    worlds = list(WORLDS) if beyond else []
    if beyond:
        studies |= {name: world_study(name, replications, seed) for name in worlds}
        studies |= {f"{name} guaranteed": guaranteed_study(name, replications, seed) for name in names}
    report_folder(out)  # now, rather than when all is done
    runner = executor_of(executor, workers)
    results = {}
    try:
        for name, study in studies.items():
            what = f"{name}: {study.rounds:,} rounds"
            with shown_progress(not quiet(as_json), what, study.replications) as progress:
                results[name] = run_study(study, executor=runner, progress=progress)
    finally:
        if hasattr(runner, "close"):
            runner.close()
    total = sum(result.elapsed for result in results.values())
    others = {name: results.pop(name) for name in worlds}
    sure = {name: results.pop(f"{name} guaranteed") for name in names if beyond}
    files = write_reproduction(results, out, others, sure)
    if as_json:
        print_json(reproduction_document(results, others, sure))
        return
    print_comparison(results)
    if others:
        print_worlds({**results, **others, **{f"{name}, {r.study.replications} runs": r for name, r in sure.items()}})
    say(f"{total:.1f} s of simulation; wrote {len(files)} files to {out} (open {Path(out) / 'report.html'})")


def print_comparison(results: dict) -> None:  # type: ignore[type-arg]
    from dobandit.simulation.reproduce import compare

    rows = []
    for name, result in results.items():
        for row in compare(name, result):
            summary = result.summary_of(row.policy)
            rows.append(
                (
                    name if row.policy == "BLM-LR" else "",
                    row.policy,
                    f"{row.ours:.1f}",
                    f"{summary.low:.1f} .. {summary.high:.1f}",
                    f"{row.published:g}",
                    f"{100 * row.relative:+.0f}%",
                    "" if math.isnan(row.standard_errors) else f"{row.standard_errors:+.1f}",
                )
            )
    columns = ["", "policy", "regret", "95% interval", "paper", "diff", "std. errors"]
    print_table(columns, rows, title="Cumulative regret at the last round", right=[2, 3, 4, 5, 6])


def print_worlds(results: dict) -> None:  # type: ignore[type-arg]
    """Every policy, those that the paper does not have too."""
    rows = []
    for name, result in results.items():
        for policy in result.labels:
            summary = result.summary_of(policy)
            first = name if policy == result.labels[0] else ""
            low, high = f"{summary.low:.1f}", f"{summary.high:.1f}"
            rows.append((first, policy, f"{summary.mean:.1f}", f"{low} .. {high}", f"{summary.quantiles[0.95]:.1f}"))
    columns = ["", "policy", "regret", "95% interval", "95% quantile"]
    print_table(columns, rows, title="Beyond the paper, on the same random numbers", right=[2, 3, 4])
