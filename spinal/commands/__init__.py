"""The command line: a file for each command, their common options in `options`."""
