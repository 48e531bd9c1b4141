"""Labelling by people: a folder of images, a page that asks for labels, and an active learner.

The packages, in import order; each imports only from those above it:

| ``store``     the project on disk: its images, settings, questions and answers
| ``known``     labels that exist already: tables, folders, projects, Label Studio
| ``learning``  a process that computes features, fits models and decides what to ask
| ``exports``   labels, predictions and the trained classifier, for use elsewhere
| ``web``       the page, its HTTP interface and who may use it
| ``studio``    Label Studio instead of the page
"""
