"""Label Studio instead of the page: reads its annotations, and chooses its next tasks."""
