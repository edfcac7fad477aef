"""Tag any number of files into a folder: cut into shards, tagged by many processes or machines, resumable."""
