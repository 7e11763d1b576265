"""Time series forecasting."""
