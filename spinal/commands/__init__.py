"""The command line: a file for each command; common options are in `options`."""
