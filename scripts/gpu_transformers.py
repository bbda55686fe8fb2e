"""Architectures of transformers at the sizes they are used in, with drawn weights: what bench_gpu_models.py
calls transformers/NAME, of models/export_architectures.py."""

from __future__ import annotations

import export_architectures as architectures
import numpy as np

# Settings beside the class's own, which are those of its base size, and tokens.
BASE = dict(hidden_size=768, num_hidden_layers=12, num_attention_heads=12, intermediate_size=3072)
SIZES: dict[str, tuple[dict, int]] = {
    "albert": (dict(BASE, embedding_size=128), 128),
    "beit": ({}, 0),
    "bloom": (dict(hidden_size=1024, n_layer=8, n_head=16), 256),
    "clip_text": ({}, 77),
    "convbert": ({}, 128),
    "deberta_v2": (dict(BASE, relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=256), 128),
    "dinov2": (dict(hidden_size=384, num_attention_heads=6, image_size=224, patch_size=14), 0),
    "distilbert": ({}, 128),
    "electra": ({}, 128),
    "gemma2": (dict(hidden_size=1152, num_hidden_layers=8, num_attention_heads=4, num_key_value_heads=1,
                    head_dim=256, intermediate_size=6912, vocab_size=32000), 256),
    "gpt_neox": (dict(hidden_size=1024, num_hidden_layers=8, num_attention_heads=16, intermediate_size=4096), 256),
    "mobilebert": ({}, 128),
    "modernbert": ({}, 256),
    "mpnet": ({}, 128),
    "opt": ({}, 256),
    "phi": (dict(hidden_size=2048, num_hidden_layers=6, num_attention_heads=32, intermediate_size=8192), 256),
    "qwen2": (dict(hidden_size=896, num_hidden_layers=12, num_attention_heads=14, num_key_value_heads=2,
                   intermediate_size=4864, vocab_size=32000), 256),
    "qwen3": (dict(hidden_size=1024, num_hidden_layers=12, num_attention_heads=16, num_key_value_heads=8,
                   head_dim=128, intermediate_size=3072, vocab_size=32000), 256),
    "segformer": ({}, 0),
    "t5": ({}, 128),
    "wav2vec2": ({}, 0),
    "whisper_encoder": (dict(d_model=512, encoder_layers=6, decoder_layers=1, encoder_attention_heads=8,
                             decoder_attention_heads=8, encoder_ffn_dim=2048, decoder_ffn_dim=2048), 0),
}  # fmt: skip


def subject(name: str):
    """What builds the module, what makes its inputs, tokens."""
    import transformers

    class_name, kind, _ = architectures.TRANSFORMERS[name]
    settings, tokens = SIZES[name]
    cls = getattr(transformers, class_name)
    extra = {} if kind in (architectures.PIXELS, architectures.WAVES) else dict(use_cache=False)
    config = cls.config_class(**{**extra, **settings})

    def make(batch, length, rng):
        ids = lambda n: rng.randint(3, config.vocab_size, (batch, n)).astype(np.int64)
        if kind == architectures.TOKENS:
            return {"input_ids": ids(length), "attention_mask": np.ones((batch, length), np.int64)}
        if kind == architectures.CAUSAL:
            return {"input_ids": ids(length)}
        if kind == architectures.PAIRS:
            return {"input_ids": ids(length), "decoder_input_ids": ids(length // 2)}
        shape = {
            architectures.PIXELS: ("pixel_values", (batch, 3, getattr(config, "image_size", 512)) + (
                getattr(config, "image_size", 512),)),
            architectures.WAVES: ("input_values", (batch, 16000)),
        }.get(kind, ("input_features", (batch, getattr(config, "num_mel_bins", 80), 3000)))  # fmt: skip
        return {shape[0]: (np.round(rng.standard_normal(shape[1]) * 32) / 32).astype(np.float32)}

    def build():
        import torch

        model = cls(config)
        model = model.encoder if name == "whisper_encoder" else model
        arrays = make(1, tokens, np.random.RandomState(1))
        module = architectures.Outputs(model, tuple(arrays)).eval()
        architectures.enliven(module, tuple(torch.from_numpy(a) for a in arrays.values()))
        return module

    return build, make, tokens
