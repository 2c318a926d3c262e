"""The tables of the schema `stepacc` and the queries on them."""
