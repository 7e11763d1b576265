"""Training: the loop, its schedules and optimizers, and checkpoints that survive a crash."""
