"""hgemm.torch while the interpreter ends: a program's threads that outlive the main one, and its atexit functions.

On a CUDA device where there is one, else on the CPU.
"""

import subprocess
import sys
import unittest

try:
    import torch
except ModuleNotFoundError:
    print("hgemm.torch while the interpreter ends: Skipped\nPyTorch is not installed")
    sys.exit(77)

DEVICE = "cuda" if torch.backends.cuda.is_built() and torch.cuda.is_available() else "cpu"
PROGRAM = f"""
import atexit, contextlib, threading, time
import torch
import hgemm.torch as ht

torch.manual_seed(1)
left, right = torch.randn(24, 64).half(), torch.randn(64, 40).half()
a, b, exact = left.to("{DEVICE}"), right.to("{DEVICE}"), left.double() @ right.double()

def check(when, product=ht.mm):
    stream = torch.cuda.Stream() if "{DEVICE}" == "cuda" else None
    with torch.cuda.stream(stream) if stream else contextlib.nullcontext():
        result = product(a, b)
    if stream:
        stream.synchronize()
    torch.testing.assert_close(result.cpu().double(), exact, rtol=2**-10, atol=2**-8)
    print(when, "right", flush=True)

def outlive(when, product=ht.mm):
    while threading.main_thread().is_alive():
        time.sleep(0.01)
    check(when, product)
"""


class Ends(unittest.TestCase):
    def check(self, code, *expected):
        done = subprocess.run([sys.executable, "-c", PROGRAM + code], capture_output=True, text=True, timeout=120)
        self.assertEqual((done.returncode, done.stdout.split("\n")[:-1]), (0, [f"{each} right" for each in expected]),
                         done.stderr)
        self.assertNotIn("Traceback", done.stderr)

    def test_threads_that_outlive_the_main_one(self):
        self.check("check('before'); threading.Thread(target=outlive, args=['after']).start()", "before", "after")

    def test_operators_of_torch(self):
        self.check(f"ht.enable(dispatch_key='{DEVICE.upper()}', strict=True)\n"
                   "threading.Thread(target=outlive, args=['mm', torch.mm]).start()", "mm")

    def test_functions_of_atexit(self):
        self.check("atexit.register(check, 'first')", "first")
        self.check("atexit.register(check, 'after'); threading.Thread(target=outlive, args=['thread']).start()",
                   "thread", "after")


if __name__ == "__main__":
    unittest.main()
