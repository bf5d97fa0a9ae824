"""The statements on tokens, answers and the audit, built once (see `statements`)."""

from __future__ import annotations

from sqlalchemy import bindparam, delete, insert, select, update

from dobandit.experiment.storage.books import AuditLine, KeptAnswer, StoredToken
from dobandit.experiment.storage.schema import answers, audit, tokens

TOKENS = select(*(tokens.c[name] for name in StoredToken._fields)).order_by(tokens.c.id)
TOKEN = TOKENS.where(tokens.c.id == bindparam("of_token"))
ADD_TOKEN = insert(tokens)
REVOKE = (
    update(tokens)
    .where(tokens.c.id == bindparam("of_token"), tokens.c.revoked_at.is_(None))
    .values(revoked_at=bindparam("at"))
)
ANSWER = select(*(answers.c[name] for name in KeptAnswer._fields)).where(
    answers.c.owner == bindparam("of_owner"), answers.c.key == bindparam("of_key")
)
KEEP = insert(answers)
FORGET = delete(answers).where(answers.c.at < bindparam("before"))
NOTE = insert(audit)
_LINES = (
    select(*(audit.c[name] for name in AuditLine._fields))
    .where(audit.c.number > bindparam("after"))
    .order_by(audit.c.number)
)
LINES = _LINES.limit(bindparam("most"))
LINES_OF = _LINES.where(audit.c.experiment == bindparam("of_experiment")).limit(bindparam("most"))
