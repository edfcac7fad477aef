"""Encoders, heads and what they say of words."""
