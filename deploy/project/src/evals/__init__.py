"""How the agents are evaluated."""
