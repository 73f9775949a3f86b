"""Alembic's entry point: runs the revisions on the given connection.

They run in the transaction of that connection.
"""

from alembic import context

from beckon_agent.store.migrations import VERSION_TABLE

context.configure(connection=context.config.attributes["connection"], version_table=VERSION_TABLE)
context.run_migrations()
