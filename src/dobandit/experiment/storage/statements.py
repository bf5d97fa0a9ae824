"""Every statement of daily use, built once: SQLAlchemy then finds its compiled text instead of making it anew."""

from __future__ import annotations

from sqlalchemy import Integer, bindparam, delete, insert, literal_column, select, update

from dobandit.experiment.storage.base import PENDING, STATES, ClosedTrial, StoredExperiment, StoredTrial
from dobandit.experiment.storage.schema import experiments, trials, version

_experiment = experiments.c.id == bindparam("of_experiment")
_of_experiment = trials.c.experiment == bindparam("of_experiment")
_numbered = trials.c.number == bindparam("of_number")
_in_state = {  # as text, or a partial index would not be used
    state: trials.c.state == literal_column(f"'{state}'") for state in STATES
}
_pending = _in_state[PENDING]
_most = bindparam("most", type_=Integer)
_columns = [trials.c[name] for name in StoredTrial._fields]

PING = select(literal_column("1", Integer))
VERSION = select(version.c.version_num)
STAMP = insert(version)

ALL = select(*(experiments.c[name] for name in StoredExperiment._fields))
FIND = ALL.where(experiments.c.name == bindparam("of_name"))
BY_ID = ALL.where(_experiment)
NAMES = select(experiments.c.name)
CREATE = insert(experiments)
RENAME = update(experiments).where(experiments.c.name == bindparam("of_name")).values(name=bindparam("new"))
DELETE = delete(experiments).where(experiments.c.name == bindparam("of_name"))
COUNTERS = select(experiments.c.trials, experiments.c.closed).where(_experiment)
LOCK = COUNTERS.with_for_update()  # SQLite leaves FOR UPDATE out, and needs it not
COUNT = update(experiments).where(_experiment).values(trials=bindparam("trials"), closed=bindparam("closed"))

CLOSED_SINCE = (
    select(*(trials.c[name] for name in ClosedTrial._fields))
    .where(_of_experiment, trials.c.position >= bindparam("since"))
    .order_by(trials.c.position)
)
PENDING_TRIALS = select(*_columns).where(_of_experiment, _pending).order_by(trials.c.number)
TRIAL = select(*_columns).where(_of_experiment, _numbered)
_after = trials.c.number > bindparam("after")
PAGE = (
    select(*_columns)
    .where(_of_experiment, _after, trials.c.number < bindparam("stop"))
    .order_by(trials.c.number)
    .limit(_most)
)
PAGE_OF = {state: PAGE.where(condition) for state, condition in _in_state.items()}
LAST = select(*_columns).where(_of_experiment).order_by(trials.c.number.desc()).limit(_most)
LAST_OF = {state: LAST.where(condition) for state, condition in _in_state.items()}
ADD = insert(trials)
REISSUE = (
    update(trials)
    .where(_of_experiment, _numbered, _pending)
    .values(issued=trials.c.issued + 1, lease_expires=bindparam("lease_expires"))
)
CLOSED_FIELDS = ("state", "position", "observation", "counts", "rounds", "closed_at", "late", "partial", "reason")
CLOSE = (
    update(trials).where(_of_experiment, _numbered, _pending).values({name: bindparam(name) for name in CLOSED_FIELDS})
)
