"""The project on disk: images, settings, questions and answers. Needs no torch."""
