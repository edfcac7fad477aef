"""Annotated text: sentences, tag schemes, and file formats. No torch here."""
