"""Small token classifiers of several families, made here, as a stranger might have trained and saved them."""

from __future__ import annotations

import string
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from conftest import TEMPLATES, VALUES

ORDERS: dict[str, list[str]] = {
    "BIO": ["O", "B-city", "I-city", "B-animal", "I-animal"],
    "BIOES": ["O", *(f"{p}-{t}" for t in ("city", "animal") for p in "BIES")],
    # as older conversion scripts left it: B- only where it occurred
    "IOB1": ["O", "I-city", "I-animal", "B-city"],
    "odd": ["I-animal", "B-city", "O", "B-animal", "I-city"],
}
FAMILIES = ["bert", "roberta", "distilbert", "deberta-v2", "xlm-roberta", "electra", "modernbert"]


def make_checkpoint(folder: Path, family: str, labels: Sequence[str], seed: int = 0) -> Path:
    """An untrained checkpoint with the given labels in the given order."""
    import torch
    from transformers import AutoConfig, AutoModelForTokenClassification

    tokenizer = _byte_level() if family in {"roberta", "xlm-roberta", "modernbert"} else _word_pieces()
    settings: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        "hidden_size": 32,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "intermediate_size": 64,
        "max_position_embeddings": 66,
        "initializer_range": 0.3,
        "pad_token_id": tokenizer.pad_token_id,
        "id2label": dict(enumerate(labels)),
        "label2id": {label: number for number, label in enumerate(labels)},
    }
    if family == "distilbert":
        settings |= {"dim": 32, "n_layers": 2, "n_heads": 4, "hidden_dim": 64}
    if family == "electra":
        settings["embedding_size"] = 32
    if family == "deberta-v2":
        settings |= {"relative_attention": True, "pos_att_type": ["p2c", "c2p"]}
    if family == "modernbert":
        settings |= {"local_attention": 16, "bos_token_id": 0, "eos_token_id": 2, "cls_token_id": 0}
        settings |= {"sep_token_id": 2}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForTokenClassification.from_config(AutoConfig.for_model(family, **settings))
        torch.nn.init.normal_(model.classifier.bias)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def _word_pieces() -> Any:
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    signs = string.ascii_lowercase + string.digits + ".,-'"
    pieces = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *signs, *(f"##{sign}" for sign in signs)]
    inner = Tokenizer(models.WordPiece({p: i for i, p in enumerate(pieces)}, unk_token="[UNK]"))
    inner.normalizer = normalizers.BertNormalizer(lowercase=True)
    inner.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    inner.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {"pad": "[PAD]", "unk": "[UNK]", "cls": "[CLS]", "sep": "[SEP]", "mask": "[MASK]"}
    return PreTrainedTokenizerFast(
        tokenizer_object=inner, model_max_length=64, **{f"{k}_token": v for k, v in names.items()}
    )


def _byte_level() -> Any:
    from tokenizers import ByteLevelBPETokenizer
    from transformers import PreTrainedTokenizerFast

    inner = ByteLevelBPETokenizer(add_prefix_space=True)
    special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
    text = [*TEMPLATES, *(value for values in VALUES.values() for value in values)]
    inner.train_from_iterator(text, vocab_size=400, min_frequency=1, special_tokens=special)
    inner._tokenizer.post_processor = _roberta_processor()
    names = {"bos": "<s>", "pad": "<pad>", "eos": "</s>", "unk": "<unk>", "mask": "<mask>"}
    names |= {"cls": "<s>", "sep": "</s>"}
    return PreTrainedTokenizerFast(
        tokenizer_object=inner._tokenizer, model_max_length=64, **{f"{k}_token": v for k, v in names.items()}
    )


def _roberta_processor() -> Any:
    from tokenizers import processors

    return processors.RobertaProcessing(("</s>", 2), ("<s>", 0), add_prefix_space=True)
