"""The answer of a run that had to wait is sent after its end, until its caller has it."""

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"


def upgrade() -> None:
    """Create the table; the process that ended an earlier run sent its answer itself."""
    op.create_table(
        "owed_answers",
        sa.Column("run_id", sa.Text, sa.ForeignKey("runs.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("failures", sa.Integer, nullable=False),
        sa.Column("due", sa.Double, nullable=False),
    )
    op.create_index("ix_owed_answers_due", "owed_answers", ["due"])
