"""Score the steps an AI agent took against those it was expected to take."""
