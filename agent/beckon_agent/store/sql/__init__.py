"""The store in SQLite and PostgreSQL, by SQLAlchemy's expression language.

`tables` is the schema, `columns` how values are written; `sqlite` and `postgresql` run one piece of work in
one transaction, and `dialect` holds the few words in which they differ. `runs`, `journal`, `event_log`,
`conversations` and `counters` are the protocols of `store.base`; `opening` puts them together.

Every statement is written once for both. What must be exact is exact by the database: SQLite has one writer
at a time; in PostgreSQL a transaction first locks the run or the limit that it is about.
"""
