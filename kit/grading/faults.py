"""The faults of `kit.world.faults`, for checks: what a scenario or a phase makes go wrong."""

from kit.world.faults import Delay, Drop, Fault, FilesystemEvent, Kill, Operation, Step, Straggler

__all__ = ["Delay", "Drop", "Fault", "FilesystemEvent", "Kill", "Operation", "Step", "Straggler"]
