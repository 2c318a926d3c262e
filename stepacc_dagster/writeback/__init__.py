"""Scores written back to where the traces came from: to Phoenix, MLflow, Langfuse, or any receiver of OTLP."""
