"""spinal: active learning that asks a sum-product network what to label next."""

__version__ = "0.1.0.dev0"
