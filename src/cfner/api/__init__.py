"""The commands as functions, with the same names, arguments and defaults. One file each, as in cli/.

They are fast to import: torch and other heavy packages are imported when a function is called.
"""
