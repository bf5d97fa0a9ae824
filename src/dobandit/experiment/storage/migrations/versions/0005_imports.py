"""Imports, which enter the log as a whole though they are written in slices. Only adds tables: what is in the log stays
as it is, and older programs that run go on undisturbed until they meet an import, whose trials they miss."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    op.create_table(
        "dobandit_imports",
        sa.Column("id", sa.Integer, primary_key=True, autoincrement=True),
        sa.Column(
            "experiment",
            sa.Integer,
            sa.ForeignKey("experiments.id", name="dobandit_imports_experiment", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("size", sa.Integer, nullable=False),
        sa.Column("expires", sa.Double, nullable=False),
        sa.Column("number", sa.Integer),
        sa.Column("position", sa.Integer),
        sa.Column("checksum", sa.BigInteger),
        sa.CheckConstraint("(number IS NULL) = (position IS NULL)", name="dobandit_imports_place"),
        sqlite_autoincrement=True,
    )
    op.create_index("dobandit_imports_of", "dobandit_imports", ["experiment", "number"])
    op.create_table(
        "dobandit_import_parts",
        sa.Column(
            "import",
            sa.Integer,
            sa.ForeignKey("dobandit_imports.id", name="dobandit_import_parts_import", ondelete="CASCADE"),
            primary_key=True,
            autoincrement=False,
        ),
        sa.Column("first", sa.Integer, primary_key=True, autoincrement=False),
        sa.Column("trials", sa.Text, nullable=False),
        sa.Column("checksum", sa.BigInteger, nullable=False),
    )
