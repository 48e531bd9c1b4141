"""Label Studio instead of the page: read its annotations, and choose its next tasks."""
