"""Checksums, sums over the closed trials, whose turn it is to choose, and an index that SQLite uses.

Only adds, but for an index that no statement used: older programs that run go on undisturbed. Trials that were closed
before have no checksum, and nothing is read or rewritten but for the new index, one pass over the log.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    op.add_column("trials", sa.Column("checksum", sa.BigInteger))
    op.add_column("experiments", sa.Column("choosing_until", sa.Double))
    op.create_table(
        "tallies",
        sa.Column(
            "experiment",
            sa.Integer,
            sa.ForeignKey("experiments.id", name="tallies_experiment", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("position", sa.Integer, nullable=False),
        sa.Column("sums", sa.Text, nullable=False),
    )
    untold = sa.text("state != 'told'")
    op.drop_index("trials_pending", "trials")
    op.create_index(
        "trials_untold",
        "trials",
        ["experiment", "state", "number"],
        sqlite_where=untold,
        postgresql_where=untold,
    )
