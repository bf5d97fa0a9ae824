"""The statements on imports, built once (see `statements`)."""

from __future__ import annotations

from sqlalchemy import and_, bindparam, delete, insert, select, update

from dobandit.experiment.storage.schema import experiments, import_parts, imports

_import = imports.c.id == bindparam("of_import")
_part_of = import_parts.c["import"] == bindparam("of_import")
_unseen = imports.c.number.is_(None)
_alive = imports.c.expires > 0.0  # whose parts nobody is clearing away

MOMENT = (
    select(
        experiments.c.trials,
        experiments.c.closed,
        imports.c.checksum,
        imports.c.id,
        imports.c.number,
        imports.c.position,
        imports.c.size,
    )
    .outerjoin(imports, and_(imports.c.experiment == experiments.c.id, imports.c.number.is_not(None)))
    .where(experiments.c.id == bindparam("of_experiment"))
    .order_by(imports.c.number)
)
PARTS = (
    select(import_parts.c.first, import_parts.c.trials, import_parts.c.checksum)
    .where(_part_of, import_parts.c.first > bindparam("behind"), import_parts.c.first < bindparam("stop"))
    .order_by(import_parts.c.first)
)

BEGIN = insert(imports)
KEEP_ALIVE = update(imports).where(_import, _unseen, _alive).values(expires=bindparam("until"))
ADD_PART = insert(import_parts)
PUBLISH = (
    update(imports)
    .where(_import, _unseen, _alive)
    .values(number=bindparam("at_number"), position=bindparam("at_position"), checksum=bindparam("total"))
)
LEFT_BEHIND = select(imports.c.id, imports.c.size).where(_unseen, imports.c.expires < bindparam("now"))
CONDEMN = update(imports).where(_import, _unseen, imports.c.expires < bindparam("now")).values(expires=0.0)
CLEAR = delete(import_parts).where(_part_of, import_parts.c.first < bindparam("stop"))
FORGET = delete(imports).where(_import, _unseen)
