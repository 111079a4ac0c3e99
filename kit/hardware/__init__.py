"""What a machine can do: links, peak FLOP/s and memory, as named profiles that everything else prices with."""

from kit.hardware.load import names, profile
from kit.hardware.profile import Profile, Tier

__all__ = ["Profile", "Tier", "names", "profile"]
