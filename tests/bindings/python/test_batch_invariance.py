"""The example that compares bits of logits over batches: on the CPU, or with products on the virtual driver."""

import argparse
import csv
import importlib.util
import io
import json
import os
import subprocess
import sys
import tempfile
import time
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
import launch  # noqa: E402
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
        ended = launch.launch([sys.executable, __file__], 2, os.environ)
        self.assertEqual([(each.failure, each.stdout.count("equal")) for each in ended], [("", 2)] * 2)

    def test_program(self):
        status, rows, text = run("--gpus", "2", "--ways", "hgemm", "--models", "llama", "--layers", "1", "--batches",
                                 "2")
        row = rows["llama", "hgemm"]
        self.assertEqual((status, row["comparisons"], row["differ"], row["remark"]), (0, "6", "0", ""), text)
        self.assertEqual(row["device"], "2 x CPU")
        self.assertGreater(int(row["served"]), 0)

    def test_heads_that_do_not_divide(self):
        model = Model("llama", layers=1, small=True, length=64, grouped=False, device="cpu", dtype=torch.bfloat16)
        with mock.patch.object(tensor_parallel.distributed, "get_world_size", lambda: 3):
            self.assertRaisesRegex(ValueError, "2 key heads do not go", tensor_parallel.split, model.model)


@unittest.skipIf(VIRTUAL, "for the CPU")
class Launch(unittest.TestCase):
    def launch(self, processes, program):
        """What has ended, what it said on stderr, and how long it took."""
        started = time.monotonic()
        with mock.patch.object(sys, "stderr", io.StringIO()) as said:
            ended = launch.launch([sys.executable, "-c", program], processes, os.environ)
        return ended, said.getvalue(), time.monotonic() - started

    def test_ranks(self):
        ended, said, _ = self.launch(3, "import os, sys; print(*(os.environ[name] for name in ('RANK', 'LOCAL_RANK', "
                                        "'WORLD_SIZE'))); print('said', file=sys.stderr)")
        self.assertEqual(ended, [launch.Ended(rank, f"{rank} {rank} 3\n") for rank in range(3)])
        self.assertEqual(said, "said\n" * 3)

    def test_one_fails(self):
        """It is named, and others that would sleep on are ended, also one that does not want to."""
        program = """
import os, signal, sys, time
rank = int(os.environ["RANK"])
if rank == 0:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
open(f"{os.environ['INIT_METHOD'].removeprefix('file://')}.{rank}", "w").close()
while not all(os.path.exists(f"{os.environ['INIT_METHOD'].removeprefix('file://')}.{each}") for each in range(3)):
    time.sleep(0.01)
if rank == 1:
    HOW
print("slept", flush=True)
time.sleep(500)
"""
        for how, failure in (("sys.exit('first\\nno heads\\n')", "rank 1 ended with status 1: no heads"),
                             ("os._exit(7)", "rank 1 ended with status 7"),
                             ("os.kill(os.getpid(), signal.SIGKILL)", "rank 1 was ended by SIGKILL"),
                             ("os.kill(os.getpid(), 40)", "rank 1 was ended by signal 40")):
            with mock.patch.object(launch, "GRACE", 0.5):
                ended, _, seconds = self.launch(3, program.replace("HOW", how))
            self.assertEqual([each.failure for each in ended], ["", failure, ""])
            self.assertLess(seconds, 100)

    def test_one_is_killed_in_a_group(self):
        """The other waits for its part of a sum."""
        ended, _, seconds = self.launch(2, f"""
import os, sys
sys.path.insert(0, {str(PROGRAM.parent)!r})
import tensor_parallel
with tensor_parallel.group(2, "cpu"):
    for step in range(1000):
        if (step, tensor_parallel.rank()) == (3, 1):
            os.abort()
        tensor_parallel.agree(step)
""")
        self.assertRegex(ended[1].failure, "^rank 1 was ended by SIGABRT")
        self.assertLess(seconds, 120)

    def test_remarks(self):
        """Of what processes print and how they end."""
        whole, part = {"model": "llama", "way": "rows", "differ": 0}, {"model": "qwen3-moe", "way": "rows", "differ": 1}
        broken = {"model": "llama", "way": "rows", "remark": "failed: rank 1: no heads"}
        killed, ended = "rank 1 was ended by SIGKILL: word", "rank 0 ended with status 1"
        for printed, failures, remarks in (
                (([whole, part], []), ("", ""), (None, None)),
                (([whole, part], []), ("", killed), (None, f"failed: {killed}")),
                (([whole], []), ("", killed), (None, f"failed: {killed}")),
                (([], []), (ended, killed), (f"failed: {ended}; {killed}",) * 2),
                (([], [broken]), ("", "rank 1 ended with status 1"),
                 (broken["remark"], "failed: its process ended before")),
                (([whole], [broken]), (ended, "rank 1 ended with status 1"),
                 (f"failed: {ended}; rank 1: no heads", f"failed: {ended}")),
                (([], []), ("", ""), ("failed: its process ended before",) * 2)):
            results = [launch.Ended(rank, "".join(f"{json.dumps(row)}\n" for row in rows), failure)
                       for rank, (rows, failure) in enumerate(zip(printed, failures))]
            with mock.patch.object(batch_invariance, "launch", lambda *_: results):
                rows = batch_invariance.run("rows", ["llama", "qwen3-moe"], 2, [])
            self.assertEqual(tuple(row.get("remark") for row in rows), remarks)
            self.assertEqual(batch_invariance.exit_status(rows), 2)


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
