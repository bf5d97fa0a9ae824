"""Trials of many rounds, control rounds and contexts. Only adds columns: older programs that run go on undisturbed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    for column in (
        sa.Column("context", sa.Text),
        sa.Column("size", sa.Integer, nullable=False, server_default=sa.text("1")),
        sa.Column("control", sa.Boolean, nullable=False, server_default=sa.false()),
        sa.Column("counts", sa.Text),
        sa.Column("rounds", sa.Integer, nullable=False, server_default=sa.text("1")),
    ):
        op.add_column("trials", column)
