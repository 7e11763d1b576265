"""Parts shared by all lessons: inputs, steps, formulas, terminal output, cached models."""
