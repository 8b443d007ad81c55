"""One loop for bases, baselines and packs; runs that stop at any point and go on exactly. Layer 4."""

from graftmt.training.configuration import TrainConfig
from graftmt.training.loop import Stopped
from graftmt.training.run import train_base

__all__ = ["Stopped", "TrainConfig", "train_base"]
