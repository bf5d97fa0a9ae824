"""A model's assumptions in sentences: which hold, and what each algorithm is then guaranteed."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from dobandit.errors import listed

if TYPE_CHECKING:
    from dobandit.estimation.assumptions import Assumptions


def on_signs(known: Assumptions) -> Iterator[str]:
    """What changes where some cause makes its effect less likely."""
    if known.harmful:
        edges = listed(f"{cause} -> {effect}" for cause, effect in known.harmful)
        have = "has a negative weight" if len(known.harmful) == 1 else "have negative weights"
        yield (
            f"Harmful effects: {edges} {have}. One more variable set to 1 can lower the target, so it "
            "is not enough to look among sets of exactly K."
        )


def on_assumptions(known: Assumptions) -> Iterator[str]:
    if known.linear:
        yield (
            "Assumptions 1 and 2 hold: the model is linear, so L1 = kappa = 1, and L2 may be as small as we like. "
            "So Eq. (3) only asks for an invertible M, and R = 1."
        )
    else:
        yield f"Assumption 1 holds: f' <= L1 = {known.l1:.4g} and |f''| <= L2 = {known.l2:.4g}."
        flattest = min((node for node in known.nodes if node.parents), key=lambda node: node.kappa).name
        verdict = f"holds: f' >= kappa = {known.kappa:.4g}" if known.assumption2 else "fails: f' can be 0"
        yield f"Assumption 2 {verdict} (at {flattest!r})."
    if known.continuous:
        yield "Assumption 3 is about binary variables; these are continuous."
    elif known.zeta_exact is not None:
        tightest = min((n for n in known.nodes if n.zeta is not None), key=lambda n: (n.zeta, n.name)).name
        verdict = f"holds with zeta = {known.zeta_exact:.4g}" if known.assumption3 else "fails"
        why = "is the closest to being" if known.assumption3 else "is"
        yield f"Assumption 3 {verdict}: a parent of {tightest!r} {why} decided by the other parents."
        never = [node.name for node in known.nodes if node.impossible]
        if never:
            yield f"Some patterns of the parents of {listed(never)} never happen; they were left out of zeta."
    elif known.zeta_lemma is not None:
        yield (
            f"Assumption 3 holds with zeta = {known.zeta_lemma:.4g} at least (Appendix B, from upsilon = "
            f"{known.upsilon:.4g} and D_out = {known.D_out}); the model is too large for the exact zeta."
        )
    else:
        yield "Assumption 3 is open: the model is too large for the exact zeta, and Appendix B does not settle it."


def on_guarantees(known: Assumptions) -> Iterator[str]:
    """What BLM-LR and BGLM-OFU are guaranteed, and when."""
    if known.harmful:
        yield "BLM-LR and BGLM-OFU: no guarantee is known, since the paper's policies need nonnegative weights."
        return
    if known.linear:
        theorem = 4 if known.continuous else 3
        yield f"BLM-LR is guaranteed regret O(n^2 sqrt(D T) log T) (Theorem {theorem}); it needs no Assumption 3."
    theorem, order = (2, "n sqrt(D T) log T") if known.linear else (1, "n L1 / kappa sqrt(D T) log T")
    if known.continuous:
        yield "BGLM-OFU: no guarantee is known for continuous variables."
    elif not (known.assumption1 and known.assumption2 and known.assumption3):
        missing = [str(i) for i in (1, 2, 3) if not getattr(known, f"assumption{i}")]
        yield f"BGLM-OFU: no guarantee is known without Assumption {' and '.join(missing)} (Theorem {theorem})."
    elif known.initial_rounds is None:
        yield f"BGLM-OFU: Theorem {theorem} holds, but kappa is so small that its T0 is no number."
    else:
        yield f"BGLM-OFU is guaranteed regret O({order}) (Theorem {theorem}) after T0 rounds of pure observation."
        late = f" That is more than the horizon of {known.horizon:,}, so the theorem says nothing for it."
        yield (
            f"T0 = {known.initial_rounds:,} rounds (with c = {known.c:g}; the paper gives no value for c)."
            + (late if known.initial_rounds >= known.horizon else "")
        )
        steepest = max(known.thresholds().items(), key=lambda item: item[1])
        yield f"Instead one may wait until lambda_min(M) meets Eq. (3), here {steepest[1]:.4g} for {steepest[0]!r}" + (
            " (at least 1, for Lemma 9), which is usually much sooner."
            if steepest[1] < known.horizon
            else f"; but lambda_min(M) is at most t, so that takes more than {known.horizon:,} rounds too."
        )
