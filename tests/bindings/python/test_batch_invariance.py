"""The example that compares bits of logits over batches: on the CPU, or with products on the virtual driver."""

import argparse
import csv
import importlib.util
import os
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

missing = [name for name in ("torch", "transformers") if importlib.util.find_spec(name) is None]
if missing:
    print(f"the example of batch invariance: Skipped\n{' and '.join(missing)} not installed")
    sys.exit(77)

SOURCE = Path(os.environ.get("HGEMM_SOURCE", Path(__file__).parents[3]))
PROGRAM = SOURCE / "bindings/python/examples/batch_invariance.py"
VIRTUAL = "EMU_ARCH" in os.environ
sys.path.insert(0, str(PROGRAM.parent))
import batch_invariance  # noqa: E402
import product_overrides as overrides  # noqa: E402
import torch  # noqa: E402
from invariant_models import Model  # noqa: E402


def run(*options):
    """Status, rows by model and way, and what was printed."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / "rows.csv"
        done = subprocess.run([sys.executable, str(PROGRAM), "--small", "--device", "cpu", "--no-times", "--csv",
                               str(table), *options], stdout=subprocess.PIPE, text=True, timeout=500)
        rows = list(csv.DictReader(table.read_text().splitlines())) if table.exists() else []
    return done.returncode, {(row["model"], row["way"]): row for row in rows}, done.stdout


@unittest.skipIf(VIRTUAL, "for the CPU")
class OnTheCpu(unittest.TestCase):
    def test_controls(self):
        """Where no product depends on the batch nothing differs."""
        status, rows, _ = run("--ways", "rows,hgemm-default", "--layers", "1", "--batches", "2,5")
        self.assertEqual(status, 2)
        for model in ("llama", "qwen3-moe"):
            control, product = rows[model, "rows"], rows[model, "hgemm-default"]
            self.assertEqual((control["comparisons"], control["differ"], control["remark"]), ("9", "0", ""))
            self.assertEqual(control["logits"], str(9 * 28 * 512))
            self.assertGreater(int(product["served"]), 0)

    def test_a_product_that_depends_on_the_batch(self):
        """It sums in two halves if there are many rows."""
        def mm(a, b):
            half = a.shape[1] // 2 if a.shape[0] > 30 else 0
            return overrides.by_row(a[:, :half], b[:half]) + overrides.by_row(a[:, half:], b[half:])

        model = Model("llama", layers=1, small=True, length=64, grouped=False, device="cpu", dtype=torch.bfloat16)
        prompt = batch_invariance.Prompt(model, small=True)
        self.addCleanup(overrides.override(overrides.products_by(mm), "CPU"))
        with torch.no_grad():
            seen = {batch: batch_invariance.compare(prompt, [batch], [24], lambda _: None) for batch in (1, 2)}
        self.assertEqual(seen[1]["differ"], 0)
        self.assertGreater(seen[2]["differ"], 1000)
        self.assertGreater(seen[2]["largest"], 0)

    def test_what_cannot_be_run(self):
        status, rows, text = run("--ways", "hgemm,triton,shim", "--models", "llama", "--layers", "1", "--batches", "2")
        self.assertEqual(status, 2)
        self.assertIn("Nothing is proved", text)
        for row in rows.values():
            self.assertRegex(row["remark"], "^not run: ")
            self.assertEqual(row["differ"], "")
        self.assertIn("no batch-invariant mode", rows["llama", "hgemm"]["remark"])

    def test_wrong_options(self):
        for options in (["--ways", "magic"], ["--batches", "0"], ["--models", "gpt"]):
            with self.assertRaises(SystemExit), open(os.devnull, "w") as null:
                before, sys.stderr = sys.stderr, null
                try:
                    batch_invariance.parse(options)
                finally:
                    sys.stderr = before
        self.assertIsInstance(batch_invariance.parse([]), argparse.Namespace)

    def test_exit_status(self):
        equal, other = {"way": "hgemm", "differ": 0}, {"way": "shim", "differ": 3}
        cublas, failed = {"way": "cublas", "differ": 9}, {"way": "triton", "remark": "failed: x"}
        for rows, status in (([equal, cublas], 0), ([equal, other], 1), ([cublas], 2), ([equal, failed], 2),
                             ([other, failed], 1), ([equal, {"way": "shim", "remark": "not run: x"}], 0)):
            self.assertEqual(batch_invariance.exit_status(rows), status)


@unittest.skipUnless(VIRTUAL, "for the virtual driver")
class OnTheVirtualDriver(unittest.TestCase):
    def test_batch_invariant_products(self):
        status, rows, text = run("--products-on-gpu", "--ways", "hgemm", "--models", "llama", "--layers", "1",
                                 "--batches", "3")
        row = rows["llama", "hgemm"]
        self.assertEqual((status, row["comparisons"], row["differ"]), (0, "6", "0"), text)
        self.assertGreater(int(row["served"]), 0)


if __name__ == "__main__":
    unittest.main()
