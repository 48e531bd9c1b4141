"""The learning part of `spinal label`: features, models, and the choice of questions.

The worker runs in a separate process. It reads answers from the store, and writes the queue of
questions, the learner and its predictions for all images.
"""
