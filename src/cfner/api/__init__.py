"""What the commands do, as functions: the same names, arguments and defaults. One file each, as in cli/.

They are light to import: what computes is imported when a function is called.
"""
