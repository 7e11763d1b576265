"""What all lessons share: inputs, steps, formulas, terminal output, trained models."""
