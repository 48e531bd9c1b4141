"""Classifiers side by side on many kinds of features: see `__main__`."""
