"""What alembic runs: the revisions, on the connection and in the transaction that it is given."""

from alembic import context

from beckon_agent.store.migrations import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
