"""Judging a run by references: the parts of `agent.trajectory_match` (contract, sections 2, 4 and 5).

`run` takes out of a partition what is judged, `considered` leaves out what is ignored and finds what is forbidden,
`relation` says which observed step satisfies which reference step, `modes` and `counts` compare the two sides,
`waste` and `budgets` look at the run alone, `judge` puts all of it together for one reference and chooses among
several, and `members` writes the rows.
"""
