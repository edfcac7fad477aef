"""Annotated text: sentences, tag schemes, file formats and the generated demo corpus. No torch here."""
