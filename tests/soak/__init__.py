"""A soak: `stepacc dev` at work while things change and break; `python -m tests.soak` runs it."""
