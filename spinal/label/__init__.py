"""A person as the oracle: images of a folder, a page that asks for labels, a learner behind it."""
