"""What a form says of a new experiment, in the words of `create_experiment`; what is wrong stands beside its field."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple, TypeVar

from starlette.datastructures import FormData

from dobandit.checks import names_in, number
from dobandit.errors import DobanditError, ExperimentError, InterventionError
from dobandit.experiment.definition import checked_share, checked_within
from dobandit.experiment.storage.refusals import checked_name
from dobandit.graph.causal_graph import CausalGraph
from dobandit.oracle.rules import RULE_WORDS, Rules, require_budget
from dobandit.policy.problem import checked_horizon
from dobandit.service.pages.forms import text
from dobandit.service.pages.parts import ALWAYS, CAN_BE_SET, FORBIDDEN, REQUIRED, Row, field_of
from dobandit.service.pages.sketch import Sketch

T = TypeVar("T")
_ANY_COST = 1e300
SMALLER = (("", "where they can be best"), ("yes", "count"), ("no", "do not count"))
EFFECTS = (("", "as the policy takes it"), ("nonnegative", "no cause does harm"), ("any", "some may do harm"))
VALUES = (("", "0 or 1"), ("continuous", "numbers from 0 to 1"))


class Begun(NamedTuple):
    """The words of `create_experiment`, and what is wrong by field of the form."""

    words: dict[str, Any]
    faults: dict[str, str]


def words_of(form: FormData, sketch: Sketch, graph: CausalGraph) -> Begun:
    faults: dict[str, str] = dict(sketch.faults)

    def checked(field: str, check: Callable[[], T]) -> T | None:
        try:
            return check()
        except DobanditError as error:
            faults.setdefault(field, str(error))
            return None

    words: dict[str, Any] = {
        "name": checked("name", lambda: checked_name(text(form, "name"))),
        "horizon": checked("horizon", lambda: checked_horizon(_whole(form, "horizon", "the number of rounds"))),
        "control": checked("control", lambda: checked_share(_number(form, "control") or 0.0)),
        "stop_within": checked("stop_within", lambda: checked_within(_number(form, "stop_within"))),
        "smaller": {"yes": True, "no": False}.get(text(form, "smaller")),
        "effects": text(form, "effects") or None,
        "continuous": text(form, "values") == "continuous",
        "budget": checked("budget", lambda: _budget(form, graph)),
        "total_cost": checked("total_cost", lambda: _total_cost(form, graph)),
        "exclusive": checked("exclusive", lambda: _groups(form, graph)) or (),
        "levers": {},
        "costs": {},
    }
    for row in sketch.rows:
        if row.part in CAN_BE_SET and row.levers:  # the page shows these fields for no other
            words["levers"][row.name] = checked(field_of("levers", row.name), partial(_levers, row))
        if row.part in CAN_BE_SET and row.cost:
            words["costs"][row.name] = checked(field_of("cost", row.name), partial(_cost, row, graph))
    for part, word in ((REQUIRED, "require"), (FORBIDDEN, "forbid"), (ALWAYS, "always_set")):
        words[word] = sketch.chosen.playing(part) if sketch.chosen is not None else []
    if not sketch.from_model:
        words["links"] = _links(sketch.rows)
    if not faults:
        checked(
            "total_cost" if words["costs"] and words["total_cost"] is None else "budget", lambda: _fit(words, graph)
        )
    return Begun(words, faults)


def _fit(words: dict[str, Any], graph: CausalGraph) -> None:
    """Whether some set is allowed by all of it together."""
    Rules(**{word: words[word] for word in ("budget", *RULE_WORDS) if word in words}).candidates(graph)


def _budget(form: FormData, graph: CausalGraph) -> int | None:
    given = _whole(form, "budget", "how many variables may be set")
    return None if given is None else require_budget(graph, given)


def _total_cost(form: FormData, graph: CausalGraph) -> float | None:
    given = _number(form, "total_cost")
    if given is not None:
        Rules(total_cost=given).candidates(graph)
    return given


def _groups(form: FormData, graph: CausalGraph) -> tuple[tuple[str, ...], ...]:
    """A line each."""
    groups = []
    for i, line in enumerate(text(form, "exclusive").splitlines(), 1):
        found = names_in(line)
        if line.strip() and len(set(found)) < 2:
            raise InterventionError(
                f"line {i}: a group is two or more variables of which a set holds at most one, such as email, letter, "
                f"but got {line.strip()[:60]!r}."
            )
        groups += [tuple(found)] if found else []
    Rules(total_cost=0.0, exclusive=tuple(groups)).candidates(graph)
    return tuple(groups)


def _levers(row: Row) -> tuple[float, ...]:
    try:
        values = tuple(map(number, row.levers.replace(",", " ").replace(";", " ").split()))
    except ValueError:
        raise InterventionError(
            f"what a variable may be set to is numbers from 0 to 1 with commas between them, such as 0, 1, but got "
            f"{row.levers[:40]!r}."
        ) from None
    return Rules(levers={row.name: values}).values_of(row.name)


def _cost(row: Row, graph: CausalGraph) -> float:
    cost = _as_number(row.cost)
    Rules(costs={row.name: cost}, total_cost=_ANY_COST).candidates(graph)
    return cost


def _links(rows: list[Row]) -> dict[str, str] | None:
    """By variable."""
    return {row.name: row.link for row in rows if row.link and row.has_causes} or None


def _number(form: FormData, field: str) -> float | None:
    given = text(form, field)
    return _as_number(given) if given else None


def _as_number(given: str) -> float:
    try:
        return number(given.replace(",", "."))
    except ValueError:
        raise ExperimentError(f"this is a number, such as 0.5, but got {given[:40]!r}.") from None


def _whole(form: FormData, field: str, what: str) -> int | None:
    given = text(form, field)
    if not given:
        return None
    if not given.isascii() or not given.isdigit() or len(given) > 12:
        raise ExperimentError(f"{what} is a whole number, but got {given[:40]!r}.")
    return int(given)
