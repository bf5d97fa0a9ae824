"""Tokens, kept answers and the audit. Only adds tables: older programs that run go on undisturbed."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    op.create_table(
        "dobandit_tokens",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("scope", sa.String(16), nullable=False),
        sa.Column("experiment", sa.Integer),
        sa.Column("hashed", sa.String(64), nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("expires_at", sa.Double),
        sa.Column("revoked_at", sa.Double),
        sa.CheckConstraint("scope IN ('read', 'work', 'manage')", name="dobandit_tokens_scope"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "dobandit_answers",
        sa.Column("owner", sa.Text, primary_key=True),
        sa.Column("key", sa.Text, primary_key=True),
        sa.Column("digest", sa.String(64), nullable=False),
        sa.Column("answer", sa.Text, nullable=False),
        sa.Column("at", sa.Double, nullable=False),
        sqlite_with_rowid=False,
    )
    op.create_index("dobandit_answers_at", "dobandit_answers", ["at"])
    op.create_table(
        "dobandit_audit",
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("at", sa.Double, nullable=False),
        sa.Column("who", sa.Text, nullable=False),
        sa.Column("what", sa.String(32), nullable=False),
        sa.Column("experiment", sa.Integer),
        sa.Column("name", sa.Text),
        sa.Column("detail", sa.Text, nullable=False),
        sqlite_autoincrement=True,
    )
