"""Trace conventions: from raw spans to canonical ones.

One module a dialect, each with `read` and what tells it; `recognise` holds the ordered table and makes the canonical
span; `declared` is the user's own convention; `cleaning` then makes one call one span over the whole trace.
"""
