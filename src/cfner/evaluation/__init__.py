"""Spans in, numbers out: scores, confusions, forgetting. No torch here."""
