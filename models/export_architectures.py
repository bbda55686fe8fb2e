#!/usr/bin/env python3
"""Exports architectures of torchvision, transformers and timm as .pt2 files.

    export_architectures.py --output-dir DIR [LIBRARY | LIBRARY/NAME]...
    export_architectures.py --list

Weights are random but alive: batch norms have the statistics of a pass, and what the
libraries set to zero or nearly so (heads, layer scales) is drawn anew, else wrong kernels
do not show. Batch (and length) are dynamic as far as the architecture lets them. Of
transformers the models are narrow and have two layers; of the others the smallest one of
each family. A file is DIR/LIBRARY/NAME.pt2; with --core also DIR/LIBRARY/NAME-core.pt2.
scripts/check_pt2.py compares engines of them with torch.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import time
import warnings
from pathlib import Path

os.environ.setdefault("HF_HUB_OFFLINE", "1")

import torch
from torch import nn
from torch.export import Dim

TORCHVISION = (
    "alexnet", "convnext_tiny", "deeplabv3_mobilenet_v3_large", "densenet121", "efficientnet_b0",
    "efficientnet_v2_s", "fcn_resnet50", "googlenet", "inception_v3", "lraspp_mobilenet_v3_large",
    "maxvit_t", "mc3_18", "mnasnet0_5", "mobilenet_v2", "mobilenet_v3_small", "mvit_v1_b", "r2plus1d_18",
    "r3d_18", "raft_small", "regnet_x_400mf", "regnet_y_400mf", "resnet18", "resnext50_32x4d", "s3d",
    "shufflenet_v2_x0_5", "squeezenet1_1", "swin3d_t", "swin_t", "swin_v2_t", "vgg11_bn", "vit_b_32",
    "wide_resnet50_2",
)  # fmt: skip
# Image sizes other than 128, where an architecture is made for one.
SIZES = {
    "inception_v3": 299, "maxvit_t": 224, "mvit_v1_b": 224, "vit_b_32": 224, "raft_small": 128, "s3d": 224,
}  # fmt: skip
VIDEO = {"mc3_18": 8, "r2plus1d_18": 8, "r3d_18": 8, "s3d": 16, "swin3d_t": 8, "mvit_v1_b": 16}

TIMM = (
    "beit_base_patch16_224", "botnet26t_256", "cait_xxs24_224", "coat_lite_tiny", "coatnet_nano_rw_224",
    "convit_tiny", "convmixer_768_32", "convnextv2_atto", "crossvit_tiny_240", "cspdarknet53", "davit_tiny",
    "deit_tiny_patch16_224", "densenet121", "dla34", "dpn68", "edgenext_xx_small", "efficientformer_l1",
    "efficientnet_b0", "efficientvit_b0", "eva02_tiny_patch14_224", "fastvit_t8", "focalnet_tiny_srf",
    "gcvit_xxtiny", "ghostnet_100", "hgnetv2_b0", "hrnet_w18_small", "inception_next_tiny", "lcnet_050",
    "levit_128s", "mambaout_femto", "mixer_s32_224", "mobilenetv4_conv_small", "mobileone_s0",
    "mobilevit_xxs", "nasnetalarge", "nest_tiny", "nf_resnet50", "pit_ti_224", "poolformer_s12", "pvt_v2_b0",
    "regnety_002", "repvit_m0_9", "res2net50_14w_8s", "resnest14d", "rexnet_100", "seresnet50",
    "sequencer2d_s", "skresnet18", "swinv2_cr_tiny_224", "tnt_s_patch16_224", "twins_svt_small",
    "vit_tiny_patch16_224", "volo_d1_224", "xception41", "xcit_nano_12_p16_224",
)  # fmt: skip

BATCH = Dim("batch", min=1, max=16)
LENGTH = Dim("length", min=2, max=64)
VOCABULARY = 128
NARROW = dict(
    vocab_size=VOCABULARY, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=96,
    max_position_embeddings=128, pad_token_id=0, bos_token_id=1, eos_token_id=2, use_cache=False,
)  # fmt: skip
IMAGE = dict(image_size=64, patch_size=16, num_channels=3)
TOKENS, CAUSAL, PIXELS, WAVES, PAIRS, FEATURES = "tokens", "causal", "pixels", "waves", "pairs", "features"

# Class, kind of inputs, settings beside the narrow ones (None takes one away).
TRANSFORMERS = {
    "albert": ("AlbertModel", TOKENS, dict(embedding_size=32)),
    "bart": ("BartForConditionalGeneration", PAIRS, dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96)),
    "beit": ("BeitModel", PIXELS, IMAGE),
    "bert": ("BertModel", TOKENS, {}),
    "bloom": ("BloomForCausalLM", CAUSAL, dict(n_layer=2, n_head=4)),
    "clip_text": ("CLIPTextModel", TOKENS, {}),
    "clip_vision": ("CLIPVisionModel", PIXELS, IMAGE),
    "convbert": ("ConvBertModel", TOKENS, dict(embedding_size=64)),
    "convnext": ("ConvNextModel", PIXELS, dict(hidden_size=None, num_attention_heads=None, hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 2, 1])),
    "data2vec_text": ("Data2VecTextModel", TOKENS, dict(max_position_embeddings=130)),
    "deberta_v2": ("DebertaV2Model", TOKENS, dict(relative_attention=True, pos_att_type=["p2c", "c2p"], position_buckets=16)),
    "dinov2": ("Dinov2Model", PIXELS, IMAGE),
    "distilbert": ("DistilBertModel", TOKENS, dict(dim=64, n_layers=2, n_heads=4, hidden_dim=96)),
    "electra": ("ElectraModel", TOKENS, dict(embedding_size=32)),
    "falcon": ("FalconForCausalLM", CAUSAL, {}),
    "gemma": ("GemmaForCausalLM", CAUSAL, dict(num_key_value_heads=1, head_dim=16)),
    "gemma2": ("Gemma2ForCausalLM", CAUSAL, dict(num_key_value_heads=2, head_dim=16, sliding_window=8)),
    "gpt2": ("GPT2LMHeadModel", CAUSAL, dict(n_embd=64, n_layer=2, n_head=4, n_positions=128)),
    "gpt_neo": ("GPTNeoForCausalLM", CAUSAL, dict(num_layers=2, num_heads=4, attention_types=[[["global", "local"], 1]], window_size=8)),
    "gpt_neox": ("GPTNeoXForCausalLM", CAUSAL, {}),
    "gptj": ("GPTJForCausalLM", CAUSAL, dict(n_embd=64, n_layer=2, n_head=4, n_positions=128, rotary_dim=8)),
    "granite": ("GraniteForCausalLM", CAUSAL, dict(num_key_value_heads=2)),
    "llama": ("LlamaForCausalLM", CAUSAL, dict(num_key_value_heads=2)),
    "llama4_text": ("Llama4ForCausalLM", CAUSAL, dict(num_key_value_heads=2, head_dim=16, intermediate_size_mlp=96, num_local_experts=2, moe_layers=[], interleave_moe_layer_step=5)),
    "mistral": ("MistralForCausalLM", CAUSAL, dict(num_key_value_heads=2, sliding_window=8)),
    "mobilebert": ("MobileBertModel", TOKENS, dict(embedding_size=32, intra_bottleneck_size=32)),
    "modernbert": ("ModernBertModel", TOKENS, dict(global_attn_every_n_layers=2, local_attention=8)),
    "mpnet": ("MPNetModel", TOKENS, {}),
    "mpt": ("MptForCausalLM", CAUSAL, dict(d_model=64, n_layers=2, n_heads=4, max_seq_len=128)),
    "opt": ("OPTForCausalLM", CAUSAL, dict(ffn_dim=96, word_embed_proj_dim=64)),
    "phi": ("PhiForCausalLM", CAUSAL, {}),
    "qwen2": ("Qwen2ForCausalLM", CAUSAL, dict(num_key_value_heads=2)),
    "qwen3": ("Qwen3ForCausalLM", CAUSAL, dict(num_key_value_heads=2, head_dim=16)),
    "roberta": ("RobertaModel", TOKENS, dict(max_position_embeddings=130)),
    "segformer": ("SegformerForSemanticSegmentation", PIXELS, dict(hidden_sizes=[16, 32, 48, 64], depths=[1, 1, 1, 1], num_attention_heads=[1, 2, 3, 4], decoder_hidden_size=32)),
    "stablelm": ("StableLmForCausalLM", CAUSAL, dict(num_key_value_heads=2)),
    "swin": ("SwinModel", PIXELS, dict(image_size=64, patch_size=4, hidden_size=None, num_attention_heads=None, num_hidden_layers=None, embed_dim=16, depths=[2, 2], num_heads=[2, 4], window_size=4)),
    "t5": ("T5ForConditionalGeneration", PAIRS, dict(d_model=64, d_kv=16, d_ff=96, num_layers=2, num_decoder_layers=2, num_heads=4, relative_attention_num_buckets=16, decoder_start_token_id=0)),
    "vit": ("ViTModel", PIXELS, IMAGE),
    "wav2vec2": ("Wav2Vec2Model", WAVES, dict(conv_dim=[32] * 3, conv_kernel=[10, 3, 3], conv_stride=[5, 2, 2], num_conv_pos_embeddings=16, num_conv_pos_embedding_groups=4)),
    "whisper_encoder": ("WhisperModel", FEATURES, dict(d_model=64, encoder_layers=2, decoder_layers=2, encoder_attention_heads=4, decoder_attention_heads=4, encoder_ffn_dim=96, decoder_ffn_dim=96, max_source_positions=64, max_target_positions=64, num_mel_bins=16)),
    "xlm_roberta": ("XLMRobertaModel", TOKENS, dict(max_position_embeddings=130)),
}  # fmt: skip


class Outputs(nn.Module):
    """The float tensors of what a model of transformers gives, caches left out."""

    def __init__(self, model: nn.Module, names):
        super().__init__()
        self.model = model
        self.names = tuple(names)

    def forward(self, *inputs):
        result = self.model(**dict(zip(self.names, inputs)), return_dict=True)
        kept = ("logits", "last_hidden_state", "pooler_output")
        return {k: result[k] for k in kept if result.get(k) is not None}


def coarse(shape) -> torch.Tensor:
    """Samples that differ in more than their noise, as those of scripts/check_pt2.py: statistics
    of noise alone make batch norms that blow up whatever else comes, and rounding errors with it."""
    noise = torch.randn(shape)
    if len(shape) < 3:
        return noise
    pattern = torch.randn([shape[0], *[-(-size // 16) for size in shape[1:]]])
    for axis, size in enumerate(shape[1:], 1):
        pattern = pattern.repeat_interleave(16, axis).narrow(axis, 0, size)
    return 0.5 * noise + pattern


def enliven(model: nn.Module, sample) -> None:
    """Values that keep signals alive, and statistics of a pass."""
    with torch.no_grad():
        for _, p in model.named_parameters():
            if not p.is_floating_point() or p.numel() < 2:
                continue
            first = p.flatten()[0]
            if not torch.equal(p, first.expand_as(p)):
                continue
            if p.dim() > 1 and min(p.shape) > 1:
                p.normal_(0, p[0].numel() ** -0.5)
            elif first.abs() < 1e-3:
                p.normal_(0, 0.2)
            else:
                p.copy_(first * (1 + 0.1 * torch.randn_like(p)))
        norms = [m for m in model.modules() if isinstance(m, nn.modules.batchnorm._BatchNorm)]
        for m in norms:
            if m.running_mean is not None:
                m.reset_running_stats()
                m.momentum = None
                m.train()
        if norms:
            # More samples than two: elsewhere a channel may vary far more.
            model(*[coarse((16, *s.shape[1:])) for s in sample])
        model.eval()


def vision(model: nn.Module, sample, dims):
    enliven(model, sample)
    return model, sample, dims


def torchvision_model(name: str):
    import torchvision

    segmentation = name.startswith(("fcn", "deeplab", "lraspp"))
    extra = dict(weights_backbone=None) if segmentation else {}
    if name in ("googlenet", "inception_v3"):
        extra = dict(init_weights=False, transform_input=False)
    model = torchvision.models.get_model(name, weights=None, **extra)
    size, frames = SIZES.get(name, 128), VIDEO.get(name)
    shape = (2, 3, frames, size, size) if frames else (2, 3, size, size)
    if name == "raft_small":
        return vision(model, (torch.randn(shape), torch.randn(shape)), ({0: BATCH}, {0: BATCH}, None)[:2])
    return vision(model, (torch.randn(shape),), ({0: BATCH},))


def timm_model(name: str):
    import timm

    model = timm.create_model(name, pretrained=False)
    channels, height, width = model.default_cfg["input_size"]
    if not model.default_cfg.get("fixed_input_size") and name.split("_")[0] in (
        "densenet121", "dla34", "dpn68", "efficientnet", "ghostnet", "hgnetv2", "lcnet", "mobilenetv4", "mobileone",
        "nasnetalarge", "nf", "regnety", "res2net50", "resnest14d", "rexnet", "seresnet50", "skresnet18", "xception41",
        "cspdarknet53", "convmixer", "hrnet", "repvit", "fastvit",
    ):  # fmt: skip
        height = width = 128
    return vision(model, (torch.randn(2, channels, height, width),), ({0: BATCH},))


def transformers_model(name: str):
    import transformers

    class_name, kind, extra = TRANSFORMERS[name]
    cls = getattr(transformers, class_name)
    settings = {k: v for k, v in {**NARROW, **extra}.items() if v is not None}
    if kind in (PIXELS, WAVES):
        settings = {k: v for k, v in settings.items() if "token" not in k and k not in ("vocab_size", "use_cache")}
    config = cls.config_class(**settings)
    model = cls(config)
    if name == "whisper_encoder":
        model = model.encoder
    tokens = torch.randint(3, VOCABULARY, (2, 12))
    dims = {0: BATCH, 1: LENGTH}
    if kind in (TOKENS, CAUSAL):
        mask = torch.ones_like(tokens)
        mask[1, 9:] = 0
        names, sample, shapes = ("input_ids", "attention_mask"), (tokens, mask), (dims, dims)
        if kind == CAUSAL:
            names, sample, shapes = names[:1], sample[:1], shapes[:1]
    elif kind == PAIRS:
        names, sample = ("input_ids", "decoder_input_ids"), (tokens, tokens[:, :7].clone())
        shapes = (dims, {0: BATCH, 1: Dim("target", min=2, max=64)})
    elif kind == PIXELS:
        size = getattr(config, "image_size", 64)
        names, sample, shapes = ("pixel_values",), (torch.randn(2, 3, size, size),), ({0: BATCH},)
    elif kind == WAVES:
        names, sample, shapes = ("input_values",), (torch.randn(2, 800),), ({0: BATCH},)
    else:
        names, sample, shapes = ("input_features",), (torch.randn(2, 16, 128),), ({0: BATCH},)
    model = Outputs(model, names).eval()
    enliven(model, sample)
    return model, sample, (shapes,)


def automatic(dims):
    if isinstance(dims, tuple):
        return tuple(automatic(d) for d in dims)
    return {k: Dim.AUTO for k in dims} if dims else dims


def export(model: nn.Module, sample, dims):
    """As dynamic as it can be had, and what that is called."""
    reason = ""
    for kind, shapes in (("dynamic", dims), ("auto", automatic(dims)), ("static", None)):
        try:
            return torch.export.export(model, sample, dynamic_shapes=shapes), kind
        except Exception as error:  # noqa: BLE001: whatever it is, the next kind is tried
            reason = f"{type(error).__name__}: {str(error).splitlines()[0][:150]}" if str(error) else repr(error)
    raise RuntimeError(reason)


MAKERS = {"torchvision": torchvision_model, "transformers": transformers_model, "timm": timm_model}
NAMES = {"torchvision": TORCHVISION, "transformers": tuple(TRANSFORMERS), "timm": TIMM}


def write(library: str, name: str, options) -> str:
    torch.manual_seed(0)
    model, sample, dims = MAKERS[library](name)
    with torch.no_grad():
        program, kind = export(model.eval(), sample, dims)
        path = options.output_dir / library / f"{name}.pt2"
        path.parent.mkdir(parents=True, exist_ok=True)
        torch.export.save(program, path)
        if options.core:
            torch.export.save(program.run_decompositions(), path.with_name(f"{name}-core.pt2"))
    return kind


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="LIBRARY[/NAME]")
    parser.add_argument("--output-dir", type=Path)
    parser.add_argument("--core", action="store_true", help="core ATen operators too")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args()
    every = [f"{library}/{name}" for library, names in NAMES.items() for name in names]
    chosen = [n for n in every if not options.names or n in options.names or n.split("/")[0] in options.names]
    if options.list or not options.output_dir:
        print("\n".join(chosen))
        return 0
    logging.disable(logging.WARNING)
    warnings.simplefilter("ignore")
    # The fused multi-head attention of PyTorch's inference path hides the layer.
    torch.backends.mha.set_fastpath_enabled(False)
    failed = 0
    for label in chosen:
        start = time.time()
        try:
            kind = write(*label.split("/"), options)
            print(f"{label}: {kind}, {time.time() - start:.0f} s", flush=True)
        except Exception as error:  # noqa: BLE001: each model gets its line
            failed += 1
            print(f"{label}: NOT EXPORTED: {type(error).__name__}: {str(error)[:300]}", flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
