"""shardkit: questions about distributed training, and a grader that runs the answers on several ranks."""

__version__ = "0.1.0"
