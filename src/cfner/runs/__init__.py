"""A stream or a step, run from beginning to end in a folder."""
