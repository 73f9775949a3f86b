"""The store in SQLite and PostgreSQL, by SQLAlchemy's expression language.

`tables` is the schema, with the types of its columns; `sqlite` and `postgresql` run one piece of work in one
transaction, and `dialect` holds the few expressions in which they differ. `runs`, `journal`, `event_log`,
`conversations`, `history` and `counters` implement the protocols of `store.base`; `open` combines them.

Every statement is written once for both. The database itself makes exact what must be exact: SQLite has one
writer at a time; in PostgreSQL a transaction first locks its run or its limit.
"""
