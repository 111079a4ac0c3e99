"""A hardware profile: two tiers of links, peak FLOP/s by dtype, memory."""

from __future__ import annotations

from dataclasses import dataclass

DTYPES = ("float64", "float32", "tf32", "float16", "bfloat16", "float8")


@dataclass(frozen=True, slots=True)
class Tier:
    """One kind of link. bytes_per_s is what one port moves in one direction; latency_s is paid once a message."""

    latency_s: float
    bytes_per_s: float

    def message_s(self, nbytes: int | float) -> float:
        """Seconds of one message of `nbytes`: latency + bytes / bandwidth."""
        return self.latency_s + nbytes / self.bytes_per_s


@dataclass(frozen=True, slots=True)
class Profile:
    """What one rank's accelerator and its links can do, each figure the peak that its source names.

    inside, between: the links of ranks of one node, and of ranks of different nodes.
    ranks_per_node: None where every rank is in one node.
    flops_per_s: dense peak by dtype, without structured sparsity. float32 is always there.
    sources: where each figure comes from, with its date.
    """

    name: str
    note: str
    inside: Tier
    between: Tier
    ranks_per_node: int | None
    flops_per_s: tuple[tuple[str, float], ...]
    memory_bytes_per_s: float
    memory_bytes: float
    sources: tuple[tuple[str, str], ...] = ()

    def flops(self, dtype: str = "float32") -> float:
        """Peak FLOP/s in `dtype`, by torch's name (every float8_* is "float8").

        A dtype that the profile does not list runs at float32's figure.
        """
        name = "float8" if dtype.startswith("float8") else dtype
        figures = dict(self.flops_per_s)
        return figures.get(name, figures["float32"])

    def node(self, rank: int) -> int:
        """The node of a global rank; ranks fill nodes in order."""
        return 0 if self.ranks_per_node is None else rank // self.ranks_per_node

    def tier(self, rank: int, other: int) -> Tier:
        """The link between two global ranks."""
        return self.inside if self.node(rank) == self.node(other) else self.between
