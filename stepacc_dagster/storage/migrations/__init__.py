"""Alembic's side of the schema: `env` runs the revisions of `versions` on a connection it is given."""
