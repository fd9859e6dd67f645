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
from unittest import mock

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
import tensor_parallel  # noqa: E402
import timing  # noqa: E402
import torch  # noqa: E402
from invariant_models import MODELS, Model  # noqa: E402


def run(*options, times=False):
    """Status, rows by model and way, and what was printed; of times all rows."""
    with tempfile.TemporaryDirectory() as folder:
        table = Path(folder) / ("rows-times.csv" if times else "rows.csv")
        command = [sys.executable, str(PROGRAM), "--small", "--device", "cpu", "--csv", f"{folder}/rows.csv", *options]
        done = subprocess.run(command + ([] if times else ["--no-times"]), stdout=subprocess.PIPE, text=True, timeout=500)
        rows = list(csv.DictReader(table.read_text().splitlines())) if table.exists() else []
    return done.returncode, rows if times else {(row["model"], row["way"]): row for row in rows}, done.stdout


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

    def test_batch_invariant_products(self):
        status, rows, text = run("--ways", "hgemm", "--layers", "1", "--batches", "2,5")
        self.assertEqual(status, 0, text)
        for model in ("llama", "qwen3-moe"):
            row = rows[model, "hgemm"]
            self.assertEqual((row["comparisons"], row["differ"], row["remark"]), ("9", "0", ""))
            self.assertGreater(int(row["served"]), 0)

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
        status, rows, text = run("--ways", "triton,shim", "--models", "llama", "--layers", "1", "--batches", "2")
        self.assertEqual(status, 2)
        self.assertIn("Nothing is proved", text)
        for row in rows.values():
            self.assertRegex(row["remark"], "^not run: ")
            self.assertEqual(row["differ"], "")

    def test_wrong_options(self):
        for options in (["--ways", "magic"], ["--batches", "0"], ["--models", "gpt"], ["--gpus", "0"],
                        ["--gpus", "2", "--products-on-gpu"]):
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


@unittest.skipIf(VIRTUAL, "for the CPU")
class Times(unittest.TestCase):
    def test_best_window(self):
        """By a clock of the test's own: each call takes 5 s, but for the fourth window, where it takes 2 s."""
        now, calls = [0], [0]

        def call():
            calls[0] += 1
            now[0] += 2 if calls[0] in range(2 + 3 + 7 + 1, 2 + 3 + 7 + 8) else 5
        with mock.patch.object(timing.time, "perf_counter", lambda: now[0]):
            self.assertEqual(timing.seconds(call, lambda: None, lambda number: number + 4), 2)
        self.assertEqual(calls[0], 2 + 3 + timing.WINDOWS * 7)

    def test_ratios(self):
        rows = [{"model": model, "way": way, "batch": batch, "decode": rate * batch}
                for way, rate in (("hgemm", 6.0), ("cublas", 4.0)) for model in "ab" for batch in (1, 8)]
        table = timing.with_ratios(rows + [{"model": "c", "way": "hgemm", "batch": 1, "decode": 3.0}])
        order = [(row["model"], row["batch"]) for row in table[:-1:2]]
        self.assertEqual(order, [("a", 1), ("a", 8), ("b", 1), ("b", 8)])
        self.assertEqual([row["decode/cublas"] for row in table[:-1]], [1.5, 1] * 4)
        self.assertNotIn("decode/cublas", table[-1])

    def test_program(self):
        _, rows, text = run("--ways", "cublas", "--models", "qwen3-moe", "--layers", "1", "--batches", "2", "--timed",
                            "1,3", times=True)
        self.assertEqual([row["batch"] for row in rows], ["1", "3"], text)
        for row in rows:
            self.assertGreater(min(float(row["prefill"]), float(row["decode"])), 0)
            self.assertEqual((row["graph"], row["decode/cublas"], row["experts"]), ("", "1.0", "grouped"))
        self.assertIn("best of 10 windows", text)


@unittest.skipIf(VIRTUAL, "for the CPU")
class TensorParallel(unittest.TestCase):
    def test_sum_of_parts(self):
        """Two processes compute what one does, but for rounding: they run parts_equal_whole()."""
        command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2", __file__]
        done = subprocess.run(command, stdout=subprocess.PIPE, text=True, timeout=300)
        self.assertEqual((done.returncode, done.stdout.count("equal")), (0, 4), done.stdout)

    def test_program(self):
        status, rows, text = run("--gpus", "2", "--ways", "rows,hgemm-default", "--models", "llama", "--layers", "1",
                                 "--batches", "2")
        control, product = rows["llama", "rows"], rows["llama", "hgemm-default"]
        self.assertEqual((status, control["comparisons"], control["differ"], control["remark"]), (2, "6", "0", ""), text)
        self.assertEqual(control["device"], "2 x CPU")
        self.assertGreater(int(product["served"]), 0)

    def test_heads_that_do_not_divide(self):
        model = Model("llama", layers=1, small=True, length=64, grouped=False, device="cpu", dtype=torch.bfloat16)
        with mock.patch.object(tensor_parallel.distributed, "get_world_size", lambda: 3):
            self.assertRaisesRegex(ValueError, "2 key heads do not go", tensor_parallel.split, model.model)


def parts_equal_whole():
    """Of each model's logits, in fp32."""
    with tensor_parallel.group(2, "cpu"), torch.no_grad():
        for name in MODELS:
            model = Model(name, layers=2, small=True, length=64, grouped=False, device="cpu", dtype=torch.float32)
            tokens, positions = torch.arange(24).view(2, 12) * 21 % 512, torch.arange(12).expand(2, -1)
            whole = model(tokens, positions).clone()
            model.step.caches.clear()
            before = sum(weights.numel() for weights in model.model.model.layers.parameters())
            tensor_parallel.split(model.model)
            after = sum(weights.numel() for weights in model.model.model.layers.parameters())
            assert after < 0.6 * before, (before, after)
            torch.testing.assert_close(model(tokens, positions), whole, rtol=1e-4, atol=1e-5)
            print("equal")


@unittest.skipUnless(VIRTUAL, "for the virtual driver")
class OnTheVirtualDriver(unittest.TestCase):
    def test_batch_invariant_products(self):
        status, rows, text = run("--products-on-gpu", "--ways", "hgemm", "--models", "llama", "--layers", "1",
                                 "--batches", "3")
        row = rows["llama", "hgemm"]
        self.assertEqual((status, row["comparisons"], row["differ"]), (0, "6", "0"), text)
        self.assertGreater(int(row["served"]), 0)


if __name__ == "__main__":
    if "RANK" in os.environ:
        parts_equal_whole()
    else:
        unittest.main()
