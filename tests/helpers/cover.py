"""Max k-cover as a causal model: the paper's proof that the best set is NP-hard to find (Appendix G).

Each set is a variable Z_j, each element a variable X_i that becomes 1 when a set that holds it is set; Y is the share
of elements covered. Without intervention all is 0. With alpha large enough, the best K of the Z are a best cover.
"""

from dobandit import BinaryGLM, CausalGraph
from dobandit.model.links import identity, rational


def cover_model(sets, linear=False):
    """The model of a cover instance: a list of sets of element numbers from 0.

    At the elements f(x) = 1 - 1 / (alpha x + 1), where the proof needs an alpha above the number of elements.

    linear  a linear relative instead: element i is 1 with probability 1/m for each of the m sets that hold it
    """
    elements = sorted(set().union(*sets))
    holders = {e: [j for j, group in enumerate(sets) if e in group] for e in elements}
    weights = {(f"X{e}", "Y"): 1.0 / len(elements) for e in elements}
    for e in elements:
        weights |= {(f"Z{j}", f"X{e}"): 1.0 / len(holders[e]) if linear else 1.0 for j in holders[e]}
    settable = [f"Z{j}" for j, group in enumerate(sets) if group]
    link = identity if linear else rational(100.0 * len(elements))
    graph = CausalGraph(list(weights), "Y", controllable=settable, bias=[])
    return BinaryGLM(graph, weights, links={f"X{e}": link for e in elements})
