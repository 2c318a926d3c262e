"""The demo: real traces, annotations and the run over them."""
