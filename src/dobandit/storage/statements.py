"""Every statement of daily use, built once: SQLAlchemy then finds its compiled text instead of making it anew."""

from __future__ import annotations

from functools import cache
from typing import Any

from sqlalchemy import Integer, Select, and_, bindparam, delete, insert, literal_column, or_, select, update
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.compiler import SQLCompiler
from sqlalchemy.sql.functions import FunctionElement
from sqlalchemy.types import NullType

from dobandit.rows.stored_trial import CLOSING, PENDING, STATES, TOLD, ClosedTrial, StoredTrial
from dobandit.storage.access import AuditLine, KeptAnswer, StoredToken
from dobandit.storage.contract import StoredExperiment
from dobandit.storage.schema import answers, audit, experiments, tokens, trials

_experiment = experiments.c.id == bindparam("of_experiment")
_of_experiment = trials.c.experiment == bindparam("of_experiment")
_numbered = trials.c.number == bindparam("of_number")
_in_state = {state: trials.c.state == literal_column(f"'{state}'") for state in STATES}  # as text, for the index


class Rare(FunctionElement[Any]):
    """A condition that few rows meet. SQLite would otherwise take the primary key, and go through the whole log."""

    type = NullType()  # SQLAlchemy would write "= 1" behind a Boolean
    inherit_cache = True


@compiles(Rare)
def _as_it_is(element: Rare, compiler: SQLCompiler, **options: Any) -> str:
    return compiler.process(element.clauses, **options)


@compiles(Rare, "sqlite")
def _as_rare(element: Rare, compiler: SQLCompiler, **options: Any) -> str:
    return f"likelihood({compiler.process(element.clauses, **options)}, 0.0001)"


_found_in = {  # the second condition is the index's own
    state: condition if state == TOLD else and_(Rare(condition), trials.c.state != literal_column(f"'{TOLD}'"))
    for state, condition in _in_state.items()
}
_most = bindparam("most", type_=Integer)

PING = select(literal_column("1", Integer))

ALL = select(*(experiments.c[name] for name in StoredExperiment._fields))
FIND = ALL.where(experiments.c.name == bindparam("of_name"))
BY_ID = ALL.where(_experiment)
EXPERIMENTS = ALL.where(experiments.c.name > bindparam("after")).order_by(experiments.c.name).limit(_most)
EXPERIMENTS_BEFORE = ALL.where(experiments.c.name < bindparam("before"))
EXPERIMENTS_BEFORE = EXPERIMENTS_BEFORE.order_by(experiments.c.name.desc()).limit(_most)
NAMES = select(experiments.c.name)
CREATE = insert(experiments)
RENAME = update(experiments).where(experiments.c.name == bindparam("of_name")).values(name=bindparam("new"))
DELETE = delete(experiments).where(experiments.c.name == bindparam("of_name"))
COUNTERS = select(experiments.c.trials, experiments.c.closed).where(_experiment)
LOCK = COUNTERS.with_for_update()  # SQLite leaves FOR UPDATE out, and needs it not
COUNT = update(experiments).where(_experiment).values(trials=bindparam("trials"), closed=bindparam("closed"))


@cache
def closed_fields(fields: tuple[str, ...]) -> Select[Any]:
    """These columns of the closed trials from a position on."""
    found = select(*(trials.c[name] for name in fields)).where(_of_experiment)
    return found.where(trials.c.position >= bindparam("since")).order_by(trials.c.position).limit(_most)


CLOSED_SINCE = closed_fields((*ClosedTrial._fields, "checksum"))
_trials = select(*(trials.c[name] for name in StoredTrial._fields)).where(_of_experiment)
PENDING_TRIALS = _trials.where(_found_in[PENDING]).order_by(trials.c.number)
TRIAL = _trials.where(_numbered)
_page = _trials.where(trials.c.number > bindparam("after"), trials.c.number < bindparam("stop"))
_page = _page.order_by(trials.c.number).limit(_most)
_last = _trials.order_by(trials.c.number.desc()).limit(_most)
PAGE, LAST = (  # by state; None: of any
    {None: found, **{state: found.where(condition) for state, condition in _found_in.items()}}
    for found in (_page, _last)
)
_changed = update(trials).where(_of_experiment, _numbered, _in_state[PENDING])
ADD = insert(trials)
REISSUE = _changed.values(issued=trials.c.issued + 1, lease_expires=bindparam("lease_expires"))
CLOSE = _changed.values({name: bindparam(name) for name in (*CLOSING, "position", "checksum")})

TALLY = select(experiments.c.tallied, experiments.c.tally).where(_experiment, experiments.c.tally.is_not(None))
_older = or_(experiments.c.tallied.is_(None), experiments.c.tallied < bindparam("reached"))
KEEP_TALLY = update(experiments).where(_experiment, _older)
KEEP_TALLY = KEEP_TALLY.values(tallied=bindparam("reached"), tally=bindparam("sums"))

# -- beside the log --------------------------------------------------------------------------------------------

TOKENS = select(*(tokens.c[name] for name in StoredToken._fields)).order_by(tokens.c.id)
TOKEN = TOKENS.where(tokens.c.id == bindparam("of_token"))
ADD_TOKEN = insert(tokens)
_valid = update(tokens).where(tokens.c.id == bindparam("of_token"), tokens.c.revoked_at.is_(None))
REVOKE = _valid.values(revoked_at=bindparam("at"))
_answered = answers.c.owner == bindparam("of_owner"), answers.c.key == bindparam("of_key")
ANSWER = select(*(answers.c[name] for name in KeptAnswer._fields)).where(*_answered)
KEEP_ANSWER = insert(answers)
FORGET_ANSWERS = delete(answers).where(answers.c.at < bindparam("before"))
NOTE = insert(audit)
_lines = select(*(audit.c[name] for name in AuditLine._fields)).order_by(audit.c.number).limit(_most)
LINES = _lines.where(audit.c.number > bindparam("after"))
LINES_OF = LINES.where(audit.c.experiment == bindparam("of_experiment"))
