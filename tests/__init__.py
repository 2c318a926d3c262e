"""The tests of stepacc."""
