"""Exports of a project: labels and predictions in several formats, and the classifier.

A new format is a file with a function that writes `Labels`, and a line in `table.FORMATS`.
"""
