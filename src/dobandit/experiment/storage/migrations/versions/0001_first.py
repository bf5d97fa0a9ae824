"""The first tables. A migration keeps its own words: it must not change when the schema does."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    op.create_table(
        "experiments",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column("name", sa.Text, nullable=False),
        sa.Column("document", sa.Text, nullable=False),
        sa.Column("created_at", sa.Double, nullable=False),
        sa.Column("trials", sa.Integer, nullable=False),
        sa.Column("closed", sa.Integer, nullable=False),
        sa.UniqueConstraint("name", name="experiments_name"),
        sa.CheckConstraint("closed >= 0 AND closed <= trials", name="experiments_counters"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "trials",
        sa.Column(
            "experiment",
            sa.Integer,
            sa.ForeignKey("experiments.id", name="trials_experiment", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("number", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("source", sa.String(16), nullable=False),
        sa.Column("do", sa.Text, nullable=False),
        sa.Column("asked_after", sa.Integer, nullable=False),
        sa.Column("available", sa.Text),
        sa.Column("predicted", sa.Double),
        sa.Column("low", sa.Double),
        sa.Column("high", sa.Double),
        sa.Column("optimistic", sa.Double),
        sa.Column("why", sa.Text, nullable=False),
        sa.Column("asked_at", sa.Double),
        sa.Column("lease_expires", sa.Double),
        sa.Column("issued", sa.Integer, nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("position", sa.Integer),
        sa.Column("observation", sa.Text),
        sa.Column("closed_at", sa.Double),
        sa.Column("late", sa.Boolean, nullable=False),
        sa.Column("partial", sa.Boolean, nullable=False),
        sa.Column("reason", sa.Text),
        sa.UniqueConstraint("experiment", "position", name="trials_position"),
        sa.CheckConstraint("source IN ('asked', 'recorded', 'imported')", name="trials_source"),
        sa.CheckConstraint("state IN ('pending', 'told', 'failed', 'abandoned')", name="trials_state"),
        sa.CheckConstraint("(state = 'pending') = (position IS NULL)", name="trials_closed"),
        sqlite_with_rowid=False,
    )
    pending = sa.text("state = 'pending'")
    op.create_index(
        "trials_pending", "trials", ["experiment", "number"], sqlite_where=pending, postgresql_where=pending
    )
