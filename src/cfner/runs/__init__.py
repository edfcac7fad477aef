"""Runs a stream or a step from beginning to end in a folder."""
