"""A person as the oracle: images of a folder, a page that asks for labels, a learner behind it.

The rooms, in the order of their imports; each imports only from those above it:

| ``store``     the project on disk: its images, settings, questions and answers
| ``known``     labels that are known before: tables, folders, projects, Label Studio
| ``learning``  a process that computes features, fits models and decides what to ask
| ``exports``   labels, predictions and the trained classifier, for use elsewhere
| ``web``       the page, its HTTP interface and who may use it
| ``studio``    Label Studio instead of the page
"""
