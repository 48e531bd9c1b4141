"""What happens behind the page: features, models, and the choice of questions.

The worker runs in a process of its own. It reads answers from the store, and writes the queue of
questions, the learner and its beliefs about all images.
"""
