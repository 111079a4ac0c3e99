"""What the program of a checks file may call on a rank, beside torch.distributed: see `kit.world.inside`."""

from __future__ import annotations

from kit.world.inside import call as call
from kit.world.inside import compute as compute
from kit.world.inside import hold as hold
from kit.world.inside import mark as mark
