"""The store in SQLite and PostgreSQL, by SQLAlchemy's expression language.

`tables` is the schema, with the types of its columns. `database` has the few expressions in which the two
differ; `sqlite` and `postgresql` run one piece of work in one transaction. `runs`, `journal`, `steps`,
`conversations`, `history`, `feed`, `outgoing` and `counters` implement the protocols of the store; `open`
combines them.

Every statement is written once for both. The database itself makes exact what must be exact: SQLite has one
writer at a time; in PostgreSQL a transaction first locks its run or its limit.
"""
