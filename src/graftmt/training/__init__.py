"""One loop for bases, baselines and packs; runs that stop at any point and resume exactly. Layer 4."""

from graftmt.training.bases import train_base
from graftmt.training.optimization import StageConfig
from graftmt.training.pack_training import train_pack
from graftmt.training.retraining import retrain_base
from graftmt.training.run_configuration import PackConfig, PackDataConfig, RetrainConfig, SubwordConfig, TrainConfig
from graftmt.training.stopping import Stopped
from graftmt.training.validation import ValidationConfig

__all__ = [
    "PackConfig",
    "PackDataConfig",
    "RetrainConfig",
    "StageConfig",
    "Stopped",
    "SubwordConfig",
    "TrainConfig",
    "ValidationConfig",
    "retrain_base",
    "train_base",
    "train_pack",
]
