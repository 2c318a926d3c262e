"""The revisions of the schema, oldest first. A released revision is never edited; a change is a new one."""
