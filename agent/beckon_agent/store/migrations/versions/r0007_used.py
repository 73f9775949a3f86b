"""How often a call was delivered, and when somebody last went on with a conversation."""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"


def upgrade() -> None:
    """Make room for it. A conversation was last gone on with when its last run was begun.

    One that an older replica opens meanwhile stands at the end of the list until it is used again.
    """
    op.add_column("calls", sa.Column("deliveries", sa.Integer))
    op.add_column("conversations", sa.Column("used_at", sa.Double, nullable=False, server_default="0"))
    op.execute(
        "UPDATE conversations SET used_at = coalesce("
        "(SELECT max(created_at) FROM runs WHERE conversation = conversations.id), created_at)"
    )
    op.create_index("ix_conversations_used", "conversations", ["owner", "used_at", "id"])
