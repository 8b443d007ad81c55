"""Models that cannot become bases, and why: said by name, before anything is read of their weights. Layer 5."""

from __future__ import annotations

from graftmt.interop.importing.family import ForeignFolder
from graftmt.places import EXPORT

_T5 = (
    "it is built like T5 (MADLAD-400 too), whose root-mean-square norms, relative position biases, gated feed-forward and "
    "unscaled attention graftmt's Transformer does not have"
)
_DECODER = "it is a decoder-only language model; graftmt needs an encoder and a decoder, as translation models have"
_EXPERTS = "{} has layers of experts, which graftmt's Transformer does not have; take one of the dense NLLB-200 models"
_REASONS = {
    "nllb-moe": _EXPERTS.format("NLLB-MoE"),
    "seamless_m4t": "SeamlessM4T is a model of speech and text; take an NLLB-200 model",
    "seamless_m4t_v2": "SeamlessM4T is a model of speech and text; take an NLLB-200 model",
    "bart": "BART was not trained to translate and has no language codes; take mBART-50 many-to-many",
    "prophetnet": "ProphetNet predicts several tokens at once, which graftmt's Transformer does not",
    **dict.fromkeys(("t5", "mt5", "umt5", "switch_transformers", "longt5"), _T5),
}
_DECODERS = (
    "gpt2",
    "gpt_neox",
    "bloom",
    "llama",
    "mistral",
    "mixtral",
    "qwen",
    "gemma",
    "falcon",
    "opt",
    "phi",
    "xglm",
    "cohere",
)
_ENCODERS = ("bert", "roberta", "xlm-roberta", "electra", "deberta", "distilbert", "albert")


def reason_to_refuse(folder: ForeignFolder) -> str:
    """Why a model of a known type cannot be imported; "" where nothing is known against it."""
    kind = folder.model_type
    if not kind and folder.path.is_dir() and EXPORT.is_one(folder.path):
        return "it was exported for another program than Hugging Face; use the base and the packs that it was made of"
    if kind in _REASONS:
        return _REASONS[kind]
    if kind.startswith(_DECODERS) or folder.settings.get("is_decoder") is True:
        return _DECODER
    if kind in _ENCODERS:
        return "it is an encoder alone; graftmt needs an encoder and a decoder, as translation models have"
    if folder.settings.get("num_experts") not in (None, 0, 1):
        return _EXPERTS.format("it")
    if folder.settings.get("quantization_config"):
        return "its weights are quantised; take the model in fp32, fp16 or bf16"
    return ""
