"""What other evaluators of agent trajectories say of the same small inputs, and how long they take."""
