"""Comparing scores: pairs, intervals of a change, tests against a baseline, and the decision of a gate.

Everything here is pure: scores come in as `Observation`s, wherever they are kept, and equal data give equal output.
Scores of two metric versions, configs or references are never put into one mean. numpy and scipy are imported by the
functions that need them, since they take longer to load than most comparisons take.
"""
