"""Deliveries of a call, and the last use of a conversation."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Add the columns, and derive the last use of earlier conversations.

    It is the beginning of their last run. A conversation that an older replica opens meanwhile is at the end
    of the list until it is used again.
    """
    op.add_column("calls", sa.Column("deliveries", sa.Integer))
    op.add_column("conversations", sa.Column("used_at", sa.Double, nullable=False, server_default="0"))
    op.execute(
        "UPDATE conversations SET used_at = coalesce("
        "(SELECT max(created_at) FROM runs WHERE conversation = conversations.id), created_at)"
    )
    op.create_index("ix_conversations_used", "conversations", ["owner", "used_at", "id"])
