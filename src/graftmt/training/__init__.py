"""One loop for bases, baselines and packs; runs that stop at any point and go on exactly. Layer 4."""

from graftmt.training.configuration import TrainConfig
from graftmt.training.run import train_base
from graftmt.training.stopping import Stopped

__all__ = ["Stopped", "TrainConfig", "train_base"]
