"""Combinatorial causal bandits: which variables to set so that the target becomes most likely.

Names load when first used, so that `import dobandit` stays fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from dobandit.version import VERSION

__version__ = VERSION

_HOME = {
    "CausalGraph": "dobandit.graph.causal_graph",
    "read_graph": "dobandit.graph.formats",
    "write_graph": "dobandit.graph.formats",
    "parse_graph": "dobandit.graph.formats",
    "print_graph": "dobandit.graph.formats",
    "from_networkx": "dobandit.graph.formats",
    "to_networkx": "dobandit.graph.formats",
    "admissible": "dobandit.graph.latent",
    "BinaryGLM": "dobandit.model.bglm",
    "LinearModel": "dobandit.model.bglm",
    "TableModel": "dobandit.model.table_model",
    "Link": "dobandit.model.links",
    "Expectation": "dobandit.model.inference",
    "expect": "dobandit.model.inference",
    "project": "dobandit.model.projection",
    "Network": "dobandit.model.network",
    "read_model": "dobandit.model.model_files",
    "solve": "dobandit.oracle.solve",
    "OracleResult": "dobandit.oracle.solve",
    "Rules": "dobandit.oracle.rules",
    "possibly_optimal": "dobandit.oracle.possibly_optimal",
    "CausalUCB": "dobandit.policy.causal_ucb",
    "CausalTS": "dobandit.policy.causal_ucb",
    "BLMLR": "dobandit.policy.paper_policies",
    "BGLMOFU": "dobandit.policy.paper_policies",
    "UCB": "dobandit.policy.arms",
    "KLUCB": "dobandit.policy.arms",
    "BestSet": "dobandit.policy.best_set",
    "LUCB": "dobandit.policy.lucb",
    "find_best": "dobandit.simulation.find_best",
    "BestFound": "dobandit.simulation.find_best",
    "EpsilonGreedy": "dobandit.policy.arms",
    "ThompsonSampling": "dobandit.policy.arms",
    "Fixed": "dobandit.policy.yardsticks",
    "Random": "dobandit.policy.yardsticks",
    "Oracle": "dobandit.policy.yardsticks",
    "Learner": "dobandit.policy.learner",
    "random_model": "dobandit.model.random_models",
    "create_experiment": "dobandit.experiment.catalogue",
    "open_experiment": "dobandit.experiment.catalogue",
    "list_experiments": "dobandit.experiment.catalogue",
    "delete_experiment": "dobandit.experiment.catalogue",
    "rename_experiment": "dobandit.experiment.catalogue",
    "connect": "dobandit.client.service",
    "Experiment": "dobandit.experiment.experiment",
    "Trial": "dobandit.rows.trial",
    "fit": "dobandit.inspect.fit",
    "Fit": "dobandit.inspect.fit",
    "rank": "dobandit.report.ranking_result",
    "simulate": "dobandit.report.simulation_result",
    "simulate_many": "dobandit.report.simulation_result",
    "load_result": "dobandit.report.simulation_result",
    "losses_figure": "dobandit.report.svg.regret_charts",
    "FunctionModel": "dobandit.simulation.study_worlds",
    "SimulationResult": "dobandit.report.simulation_result",
}
_MODULES = {"errors": "dobandit.errors", "links": "dobandit.model.links", "paper": "dobandit.paper"}

if TYPE_CHECKING:
    from dobandit import errors as errors
    from dobandit import paper as paper
    from dobandit.client.service import connect as connect
    from dobandit.experiment.catalogue import create_experiment as create_experiment
    from dobandit.experiment.catalogue import delete_experiment as delete_experiment
    from dobandit.experiment.catalogue import list_experiments as list_experiments
    from dobandit.experiment.catalogue import open_experiment as open_experiment
    from dobandit.experiment.catalogue import rename_experiment as rename_experiment
    from dobandit.experiment.experiment import Experiment as Experiment
    from dobandit.graph.causal_graph import CausalGraph as CausalGraph
    from dobandit.graph.formats import from_networkx as from_networkx
    from dobandit.graph.formats import parse_graph as parse_graph
    from dobandit.graph.formats import print_graph as print_graph
    from dobandit.graph.formats import read_graph as read_graph
    from dobandit.graph.formats import to_networkx as to_networkx
    from dobandit.graph.formats import write_graph as write_graph
    from dobandit.graph.latent import admissible as admissible
    from dobandit.inspect.fit import Fit as Fit
    from dobandit.inspect.fit import fit as fit
    from dobandit.model import links as links
    from dobandit.model.bglm import BinaryGLM as BinaryGLM
    from dobandit.model.bglm import LinearModel as LinearModel
    from dobandit.model.inference import Expectation as Expectation
    from dobandit.model.inference import expect as expect
    from dobandit.model.links import Link as Link
    from dobandit.model.model_files import read_model as read_model
    from dobandit.model.network import Network as Network
    from dobandit.model.projection import project as project
    from dobandit.model.random_models import random_model as random_model
    from dobandit.model.table_model import TableModel as TableModel
    from dobandit.oracle.possibly_optimal import possibly_optimal as possibly_optimal
    from dobandit.oracle.rules import Rules as Rules
    from dobandit.oracle.solve import OracleResult as OracleResult
    from dobandit.oracle.solve import solve as solve
    from dobandit.policy.arms import KLUCB as KLUCB
    from dobandit.policy.arms import UCB as UCB
    from dobandit.policy.arms import EpsilonGreedy as EpsilonGreedy
    from dobandit.policy.arms import ThompsonSampling as ThompsonSampling
    from dobandit.policy.best_set import BestSet as BestSet
    from dobandit.policy.causal_ucb import CausalTS as CausalTS
    from dobandit.policy.causal_ucb import CausalUCB as CausalUCB
    from dobandit.policy.learner import Learner as Learner
    from dobandit.policy.lucb import LUCB as LUCB
    from dobandit.policy.paper_policies import BGLMOFU as BGLMOFU
    from dobandit.policy.paper_policies import BLMLR as BLMLR
    from dobandit.policy.yardsticks import Fixed as Fixed
    from dobandit.policy.yardsticks import Oracle as Oracle
    from dobandit.policy.yardsticks import Random as Random
    from dobandit.report.ranking_result import rank as rank
    from dobandit.report.simulation_result import SimulationResult as SimulationResult
    from dobandit.report.simulation_result import load_result as load_result
    from dobandit.report.simulation_result import simulate as simulate
    from dobandit.report.simulation_result import simulate_many as simulate_many
    from dobandit.report.svg.regret_charts import losses_figure as losses_figure
    from dobandit.rows.trial import Trial as Trial
    from dobandit.simulation.study_worlds import FunctionModel as FunctionModel


def __getattr__(name: str) -> object:
    if name in _MODULES:
        value: object = import_module(_MODULES[name])
    elif name in _HOME:
        value = getattr(import_module(_HOME[name]), name)
    else:
        raise AttributeError(f"module 'dobandit' has no attribute {name!r}")
    globals()[name] = value
    return value


__all__ = [*_HOME, *_MODULES]


def __dir__() -> list[str]:
    return sorted({*globals(), *_HOME, *_MODULES})
