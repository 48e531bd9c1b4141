"""What a project yields: labels and predictions in several formats, and its classifier.

A new format is a file with a function that writes `Labels`, and a line in `formats.FORMATS`.
"""
