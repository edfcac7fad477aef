"""Serve a model: an HTTP interface and a page. Nothing here can train."""
