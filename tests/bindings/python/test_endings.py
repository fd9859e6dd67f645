"""Loggers while the interpreter ends, and in forked children."""

import subprocess
import sys
import textwrap
import unittest

THREADS = """
    import os, sys, threading, time
    import hgemm, numpy

    lines = []
    hgemm.set_logger(hgemm.LogLevel.TRACE, lines.append)
    a = numpy.ones((16, 16), "float16")

    def multiply():
        with hgemm.Handle(hgemm.DEVICE_HOST) as handle:
            while True:
                hgemm.matmul(a, a, handle=handle)

    for _ in range(4):
        threading.Thread(target=multiply, daemon=True).start()
    while len(lines) < 100:
        time.sleep(0.01)
"""


class Endings(unittest.TestCase):
    def run_program(self, text):
        done = subprocess.run([sys.executable, "-c", textwrap.dedent(text)], capture_output=True, text=True, timeout=120,
                              env={"OPENBLAS_NUM_THREADS": "1"})
        self.assertEqual((done.returncode, done.stderr), (0, ""))
        return done.stdout

    def test_threads_that_log_when_the_interpreter_ends(self):
        for _ in range(8):
            self.run_program(THREADS)

    def test_a_forked_child_logs_and_ends(self):
        """As one that multiprocessing starts: its exit waits for no thread of the parent."""
        self.assertEqual(self.run_program(THREADS + """
    for _ in range(20):
        child = os.fork()
        if child == 0:
            lines.clear()
            hgemm.Handle(hgemm.DEVICE_HOST).close()
            sys.exit(0 if lines else 3)
        assert os.waitpid(child, 0)[1] == 0
    print("ended")
"""), "ended\n")


if __name__ == "__main__":
    unittest.main()
