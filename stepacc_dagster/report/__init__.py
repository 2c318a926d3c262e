"""The report of a source: one page of HTML that shows its scores, what goes wrong in its traces, and how often."""
