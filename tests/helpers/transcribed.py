"""What the tests of the transcription share."""

import numpy as np


def links_of(model):
    return {name: model.link(name) for name in model.graph.nodes}


def weights_of(model):
    """theta_X by node, in the order of the features."""
    found = {}
    for name in model.graph.nodes:
        bias, weights = model.parent_weights(name)
        found[name] = np.array([bias] * model.graph.has_bias(name) + [weights[p] for p in model.graph.parents(name)])
    return found
