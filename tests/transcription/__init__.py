"""The paper's algorithms, transcribed line by line: slow and obvious, for the compiled ones to be compared with.

Notation: X a node; v its feature vector [1 if X has a bias] + [values of graph.parents(X)], of length d; theta_X its
weights in the same order; M_X (d, d) the Gram matrix; n = named nodes + 1, the constant and Y counted.
A policy's randomness in a round is (u0, u1, u2), uniform on [0, 1). Graphs have no hidden nodes.
Paper: Feng & Chen, Combinatorial Causal Bandits, Algorithms 1-4 and Appendix H.
Nothing is imported from the policies, estimators or oracles under test.
"""

from transcription.baselines import (
    EpsilonGreedyTranscription,
    KLUCBTranscription,
    RandomTranscription,
    UCBTranscription,
    relative_entropy,
)
from transcription.bglm_estimate import least_squares, score, score_root, separated
from transcription.bglm_ofu import BGLMOFUTranscription, eigenvalue_threshold, pattern_probability, per_pattern_value
from transcription.blm_lr import BLMLRTranscription
from transcription.pair_oracle import (
    BoxedMaximum,
    active_bounds,
    box_minimum,
    boxed_maximum,
    boxed_value,
    boxed_values,
    closed_form_value,
    epsilon_net_value,
    forward_value,
)
from transcription.playing import (
    Played,
    best_reward,
    conditional_mean,
    draw_world,
    expected_regret,
    expected_reward,
    play,
    set_to,
)
from transcription.shared import (
    PSEUDO_INVERSE_CUTOFF,
    TIE,
    Array,
    Learner,
    Set,
    Values,
    all_arms,
    candidate_sets,
    dimension,
    features,
    pick,
    pseudo_inverse,
    width,
)

__all__ = [
    "PSEUDO_INVERSE_CUTOFF",
    "TIE",
    "Array",
    "BGLMOFUTranscription",
    "BLMLRTranscription",
    "BoxedMaximum",
    "EpsilonGreedyTranscription",
    "KLUCBTranscription",
    "Learner",
    "Played",
    "RandomTranscription",
    "Set",
    "UCBTranscription",
    "Values",
    "active_bounds",
    "all_arms",
    "best_reward",
    "box_minimum",
    "boxed_maximum",
    "boxed_value",
    "boxed_values",
    "candidate_sets",
    "closed_form_value",
    "conditional_mean",
    "dimension",
    "draw_world",
    "eigenvalue_threshold",
    "epsilon_net_value",
    "expected_regret",
    "expected_reward",
    "features",
    "forward_value",
    "least_squares",
    "pattern_probability",
    "per_pattern_value",
    "pick",
    "play",
    "pseudo_inverse",
    "relative_entropy",
    "score",
    "score_root",
    "separated",
    "set_to",
    "width",
]
