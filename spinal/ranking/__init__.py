"""Rank pools that do not fit into memory: files in shards, on one machine or on a cluster.

`rank` reads a pool shard by shard, encodes and scores it with a trained model, and writes one
Parquet file, best points first. A new file format is a class that follows
`spinal.ranking.pools.Format`, and a line in `spinal.ranking.pools.FORMATS`.
"""

from spinal.ranking.batches import BatchScorer
from spinal.ranking.models import load_model
from spinal.ranking.rank import Ranking, rank

__all__ = ["BatchScorer", "Ranking", "load_model", "rank"]
