"""Runs over whole streams, and what is reported of them."""
