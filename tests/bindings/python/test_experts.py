"""The example that computes the experts of transformers' models, on the CPU."""

import contextlib
import importlib.util
import io
import sys
import unittest
from pathlib import Path
from unittest import mock

missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
if missing:
    print(f"test_experts: Skipped\n{' and '.join(missing)} not installed")
    sys.exit(77)

import torch
from transformers import AutoModelForCausalLM, Qwen3MoeConfig

import hgemm.torch

sys.path.insert(0, str(Path(__file__).parents[3] / "bindings/python/examples"))
import moe


class Experts(unittest.TestCase):
    @torch.no_grad()
    def test_layers(self):
        """hgemm.torch.moe() rounds less often than transformers' own functions."""
        moe.register()
        for kind, config in moe.LAYERS.values():
            errors = moe.compare(kind, config, 64, "cpu")
            self.assertLess(errors["hgemm"], errors["eager"])
            self.assertLess(errors["hgemm"], 6e-3)

    def test_program(self):
        with contextlib.redirect_stdout(io.StringIO()) as output:
            moe.main(["--tokens", "8"])
        self.assertEqual([line.split()[0] for line in output.getvalue().splitlines()], ["layer", "Mixtral", "Qwen3", "gpt-oss"])

    @torch.no_grad()
    def test_model(self):
        """As the example's text says."""
        moe.register()
        config = Qwen3MoeConfig(vocab_size=100, hidden_size=64, intermediate_size=64, moe_intermediate_size=32,
                                num_experts=8, num_experts_per_tok=2, num_hidden_layers=2, num_attention_heads=4,
                                num_key_value_heads=2, head_dim=16)
        model = AutoModelForCausalLM.from_config(config, experts_implementation="hgemm").bfloat16()
        with mock.patch.object(hgemm.torch, "moe", wraps=hgemm.torch.moe) as called:
            ours = model(torch.arange(20)[None]).logits
        self.assertEqual(called.call_count, 2)
        model.set_experts_implementation("eager")
        torch.testing.assert_close(ours, model(torch.arange(20)[None]).logits, rtol=0.05, atol=0.02)


if __name__ == "__main__":
    unittest.main()
