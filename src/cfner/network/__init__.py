"""Encoders, heads, and their scores for words."""
