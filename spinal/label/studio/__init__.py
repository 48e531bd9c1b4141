"""Label Studio in the place of the page: reads its annotations, tells it what to ask next."""
