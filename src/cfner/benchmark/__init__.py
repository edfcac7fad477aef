"""Runs over complete streams, and reports about them."""
