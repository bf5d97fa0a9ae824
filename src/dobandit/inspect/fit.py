"""`fit`: what data say of every node, and of E[target] under any action.

The data are taken in as the beginning of an experiment's log is, by the same learner: what is fitted is exactly what
`create_experiment(..., history=data)` then knows.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cached_property
from typing import Any, cast

import numpy as np

from dobandit.checks import is_one_of, shown
from dobandit.diagnosis.mechanism_nodes import (
    believed,
    by_mechanism,
    is_covered,
    never_shown,
    nodes_of,
    on_mechanisms,
    unshown,
)
from dobandit.errors import GraphError, InterventionError, ModelError, PolicyError
from dobandit.experiment.advice import never_set
from dobandit.experiment.definition import Definition, define
from dobandit.experiment.replayed_learner import ReplayedLearner, batches_of
from dobandit.graph.causal_graph import CausalGraph
from dobandit.graph.formats import as_graph
from dobandit.graph.revised_graph import RevisedGraph
from dobandit.inspect.link_choice import TABLE
from dobandit.inspect.node_fits import NodeFit, fit_nodes, node_document
from dobandit.model.causal_model import CausalModel
from dobandit.model.table_model import TableModel
from dobandit.model.weights import Do
from dobandit.oracle.actions import Action
from dobandit.oracle.frontier import MOST_PARENTS, table_list
from dobandit.oracle.node_tables import fill_tables, node_tables
from dobandit.oracle.rules import Rules
from dobandit.policy.answers import Worth
from dobandit.policy.causal_engine import CausalEngine
from dobandit.policy.engine import Interval, Rounds
from dobandit.policy.hidden_causes import Hide
from dobandit.policy.learner import Learner
from dobandit.policy.problem import Links
from dobandit.rows.batches import ImportedRows, prior_rows
from dobandit.rows.columns import columns_of
from dobandit.texts import as_html, keyword


class Fit:
    """What data say. Made by `fit`.

    graph     the observed variables: hidden ones are removed
    nodes     what the rows say of each node, with its link, its weights and whether that fits: see `NodeFit`
    rounds    how many rows the model learned from, counts included
    looks     "once" or "every": whether intervals hold at one look or at every look
    warnings  what speaks against the graph or the links
    """

    def __init__(self, definition: Definition, data: ImportedRows, looks: str | None = None) -> None:
        self.definition, self.data = definition, data
        problem = definition.problem
        self.columns = columns_of(problem)
        self._replayed = ReplayedLearner(definition, self.columns)
        self._replayed.add(data.closed())
        self.looks = looks or ("every" if data.names_trials else "once")
        self.engine.looks = self.looks
        self.graph, self.rounds = problem.graph, data.rounds
        if problem.selective:
            self.rounds = int(self.rows.counts[problem.teaches(self.rows.was_set)].sum())

    @property
    def learner(self) -> Learner:
        """The learner that has taken in the data, as an experiment with this history has it."""
        return self._replayed.learner

    @property
    def engine(self) -> CausalEngine:
        """The learner's policy at work, in ids and arrays."""
        return cast(CausalEngine, self.learner.engine)  # that of `CausalUCB`

    @cached_property
    def nodes(self) -> dict[str, NodeFit]:
        """What the rows say of each node, by name."""
        learner, beliefs = self.learner, self.engine.beliefs()
        problem = believed(learner)
        forms = {name: beliefs.node(problem.graph.index(name)).form for name in nodes_of(learner)}
        rows = self.rows
        if learner.problem.selective:
            rows = rows.part(learner.problem.teaches(rows.was_set))
        return fit_nodes(problem, by_mechanism(problem, rows), forms)

    @cached_property
    def rows(self) -> Rounds:
        """The distinct rows of each trial, with their counts."""
        return batches_of(self.data.closed(), self.columns)[0]

    @property
    def links(self) -> dict[str, str]:
        """The links by node, as `create_experiment` takes them: "auto" where a table was chosen, or nothing."""
        named = {name: node.link for name, node in self.nodes.items() if name in self.graph}
        return {
            name: "identity" if link == "rate" else "auto" if link in (TABLE, "") else link
            for name, link in named.items()
        }

    @cached_property
    def warnings(self) -> tuple[str, ...]:
        """What speaks against the graph or the links, in sentences."""
        problem = self.learner.problem
        found = [f"The rows speak against the graph: {doubt}." for doubt in self._replayed.doubts]
        was_set = np.asarray(self.rows.was_set.any(axis=0))
        levers = sorted({v for v in problem.allowed().rows().ids.ravel().tolist() if v})
        known = [v for v in levers if not unshown(self.learner, Action((v,), (1.0,)))]
        if never := [problem.graph.nodes[v - 1] for v in known if not was_set[v]]:
            found.append(never_set(never))
        for name, node in self.nodes.items():
            if not node.rows and problem.mechanisms is not None:
                found += never_shown(self.learner, [name])
            elif not node.rows:
                found.append(f"No row tells of {name!r}: it was set, or it or one of its causes is missing, in each.")
            elif node.verdict == "contradicts":
                found.append(_contradiction(name, node))
        return tuple(found)

    @cached_property
    def mechanisms(self) -> tuple[str, ...]:
        """How variables that share hidden causes answer, in sentences."""
        return tuple(on_mechanisms(self.learner))

    def expect(self, do: Do | None = None, *, context: Mapping[str, float] | None = None) -> Worth:
        """E[target | do(...)] with its interval: the value that an experiment with this history predicts.

        do       what is set: {"coupon": 1}, or names that are set to 1
        context  the value of each context variable, where the graph has some

        >>> import dobandit as dob
        >>> rows = [{"ad": 1, "buy": 1, "count": 30}, {"ad": 0, "buy": 0, "count": 50}]
        >>> dob.fit(dob.CausalGraph([("ad", "buy")], target="buy"), rows).expect({"ad": 1}).value > 0.9
        True
        """
        if do and not is_covered(self.learner, self.learner.action(_without(do, self.graph.context))):
            raise InterventionError(
                "where variables share hidden causes, a fit knows the mechanisms of single variables that are set, but "
                f"do sets {shown(do)}. Use rank with a budget: its fit knows those of every set that it ranks."
            )
        value, low, high = self.learner.predict(do, context)
        return Worth(value, Interval(low, high))

    @cached_property
    def model(self) -> TableModel:
        """What is believed, as a model: the probability of each node by the pattern of its causes, those included that
        the graph lacks and the rows prove. `expect`, `solve` and `simulate` take it."""
        engine = self.engine
        graph = engine.believed.graph
        if engine.believed.regimes is not None:
            raise ModelError(
                "variables that share hidden causes answer in several ways, by what is set, which a model without them "
                "cannot say. Ask `expect` and `rank`, which know the mechanisms."
            )
        if engine.believed.flags:
            raise ModelError(
                f"{self.warnings[0]} A model of the graph cannot say so. Ask `expect` and `rank`, which reckon with it."
            )
        parents = [len(graph.parents(name)) for name in graph.nodes]
        widest = max(parents, default=0)
        if widest > MOST_PARENTS:
            raise ModelError(
                f"tables are made of nodes with at most {MOST_PARENTS} causes, but one has {widest}. Ask `expect` and "
                "`rank`, which need no tables."
            )
        listed = table_list(range(1, len(graph) + 1), [1 << count for count in parents])
        first, tables = listed["first"], node_tables(listed, widest + 1)
        fill_tables(engine.state, tables)
        by_node = {
            name: tables.mean[first[i] :][: 1 << parents[i]].reshape((2,) * parents[i], order="F")
            for i, name in enumerate(graph.nodes)
        }
        if isinstance(graph, RevisedGraph):
            numbered, graph = graph, graph.canonical()
            for name, table in by_node.items():
                causes = numbered.parents(name)
                by_node[name] = table.transpose([causes.index(parent) for parent in graph.parents(name)])
        return TableModel(graph, {name: np.clip(table, 0.0, 1.0) for name, table in by_node.items()})

    def to_document(self) -> dict[str, Any]:
        """As JSON: the target, the rounds, the nodes and the warnings.

        >>> import dobandit as dob
        >>> rows = [{"ad": 1, "buy": 1, "count": 30}, {"ad": 0, "buy": 0, "count": 50}]
        >>> dob.fit(dob.CausalGraph([("ad", "buy")], target="buy"), rows).to_document()["rounds"]
        80
        """
        return {
            "target": self.graph.target,
            "rounds": self.rounds,
            "passed_over": list(self.data.passed),
            "nodes": {name: node_document(node) for name, node in self.nodes.items()},
            "warnings": list(self.warnings),
        }

    def __repr__(self) -> str:
        return f"Fit({self.rounds:,} rounds, {self.graph!r})"

    def __str__(self) -> str:
        nodes = [f"  {name}: {node.link or 'too few rows'}, {node.verdict}" for name, node in self.nodes.items()]
        return "\n".join([f"{self.rounds:,} rounds", *nodes, *self.mechanisms, *self.warnings])

    _repr_html_ = as_html


def _without(do: Do, names: tuple[str, ...]) -> Do:
    """What is set, without the context that may stand there too."""
    return {name: to for name, to in do.items() if name not in names} if isinstance(do, Mapping) else do


def _contradiction(name: str, node: NodeFit) -> str:
    """What a node's rows contradict, and what is left."""
    if node.promised:
        return f"The rows contradict the {node.link} link that was promised for {name!r} (p = {node.p:.1g})."
    told = f"The rows contradict every curve for {name!r}; {node.link} comes nearest (p = {node.p:.1g})."
    if TABLE not in node.held_out:
        return (
            f"{told} It has too many causes for a table: look for a cause that is missing, or acts with another only."
        )
    return f"{told} A table by the pattern of its causes fits, and is among what the learner weighs."


def fit(
    graph: CausalGraph | CausalModel,
    data: Any,
    links: Links = "auto",
    *,
    hide: Hide = (),
    always_set: Iterable[str] = (),
    looks: str | None = None,
) -> Fit:
    """What `data` say of every node of `graph`, and of E[target] under any action.

    graph  what causes what; of a model the structure and the links are used, never the weights
    data   a frame (pandas, polars, Arrow), the path of a CSV (.csv, .csv.gz) or Parquet file, or rows (mappings): a
           column per variable, 0 or 1, empty where it was not seen. Variables that were set in a row are named in its
           column `intervention_targets` or `do`, or have their value in do:NAME; `count`: how often the row was seen
    links  "auto": chosen for each node by held-out rows, and reported with the margin; or assumed, for all nodes or by
           node. To assume a link does not narrow intervals in general
    hide   observed variables that count as hidden, or "auto", as in `create_experiment`: their columns may be missing
    always_set   variables whose hidden causes do no harm, as only rows in which they were set are used
    looks  "once": intervals hold at one look at this table; "every": however often it grows and one looks again, and
           where a policy chose the sets. Default: "every" where the rows name trials, as an experiment's log does

    Returns a `Fit`.

    >>> import dobandit as dob
    >>> graph = dob.CausalGraph([("ad", "buy")], target="buy")
    >>> rows = [{"ad": 1, "buy": 1, "count": 30}, {"ad": 1, "buy": 0, "count": 20}, {"ad": 0, "buy": 0, "count": 50}]
    >>> dob.fit(graph, rows).expect({"ad": 1}).value.__round__(2)
    0.6
    """
    if not isinstance(graph, CausalModel):
        graph = as_graph(graph, "data are fitted to a graph or a model", GraphError)
    chosen = graph.structure if isinstance(graph, CausalModel) else graph
    always = Rules(always_set=always_set).always_set  # type: ignore[arg-type]
    rules = Rules(max(len(always), min(1, len(chosen.controllable))), always_set=always)
    return fitted(graph, data, rules, links, hide=hide, looks=looks)


def fitted(
    graph: CausalGraph | CausalModel,
    data: Any,
    rules: Rules,
    links: Links = "auto",
    most: int | None = None,
    hide: Hide = (),
    looks: str | None = None,
) -> Fit:
    """A fit with the rules of a problem. most: how many sets these may allow, looked at before the data."""
    if looks is not None and not is_one_of(looks, ("once", "every")):
        raise PolicyError(f"looks is 'once' or 'every', but got {shown(looks)}.")
    if isinstance(graph, CausalModel):
        if graph.continuous:
            raise PolicyError(
                "fit and rank are for variables of 0 and 1, but the model is continuous. Create an experiment with "
                f"{keyword('continuous', True)}, and import the rounds."
            )
        links = None if links == "auto" else links
    definition = define(graph, rules, seed=0, links=links, hide=hide)
    count = definition.problem.allowed().count()
    if most is not None and count > most:
        raise InterventionError(
            f"a ranking lists every allowed set, up to {most:,} of them, but there are {count:,}. Lower the budget, or "
            "forbid some variables."
        )
    return Fit(definition, prior_rows(definition.problem, data), looks)
