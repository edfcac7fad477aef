"""What reports, diff and explain share: pages, charts, the heat map."""
