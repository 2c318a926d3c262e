"""`stepacc doctor`: what is wrong with an installation, its database, its Dagster instance and its sources.

Every check is a pure function from small frozen facts to findings. The facts are gathered in `gather`, read-only; what
cannot be gathered is a finding itself and hides no other.
"""
