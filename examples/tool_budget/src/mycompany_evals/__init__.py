"""How mycompany evaluates its agents."""
