"""The networks of sm90 as networks.py reads and writes them, and what becomes of kernels that they lack."""
import tempfile
import unittest
from pathlib import Path

from networks import FEATURES, KERNELS, SM90, TRAITS, UNITS, Network

FILES = sorted(SM90.glob("choose/*/network_*.def"))


class Networks(unittest.TestCase):
    def test_reads_what_correction_cpp_includes(self):
        self.assertEqual(len(FILES), 4)
        for path in FILES:
            with self.subTest(path=path.relative_to(SM90)):
                network = Network.read(path)
                self.assertEqual(len(network.biases), UNITS)
                self.assertEqual({len(numbers) for numbers in network.kernels.values()}, {TRAITS})
                if path.parent.name == "h200":
                    self.assertEqual([len(w) for w in network.feature_weights], [UNITS] * len(FEATURES))
                    self.assertEqual([len(w) for w in network.trait_weights], [UNITS] * TRAITS)
                    self.assertEqual(len(network.shares), UNITS)

    def test_writes_what_it_reads(self):
        for path in FILES:
            with self.subTest(path=path.relative_to(SM90)):
                text = Network.read(path).text()
                self.assertEqual(self.body(text), self.body(path.read_text()))

    def test_kernels_without_numbers(self):
        whole = Network.read(SM90 / "choose" / "h200" / "network_tn.def")
        missing, kept = "sm90_splitk_64x64_occ2", "sm90_splitk_64x64"
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "network_tn.def"
            lines = whole.text().splitlines(keepends=True)
            path.write_text("".join(line.replace("sm90_coop_128x224", "sm90_coop_of_another_time")
                                    for line in lines if missing not in line))
            network = Network.read(path)
        self.assertEqual(network.numbers_of(self.kernel(missing)), whole.kernels[kept])
        self.assertEqual(network.numbers_of(self.kernel("sm90_coop_128x224")),
                         whole.kernels["sm90_coop_128x208_2x1"])
        self.assertEqual(network.numbers_of(self.kernel(kept)), whole.kernels[kept])
        for absent in (missing, "sm90_coop_128x224", "sm90_coop_of_another_time"):
            self.assertNotIn(absent, network.text())

    @staticmethod
    def kernel(name):
        return next(k for k in KERNELS if k.name == name)

    @staticmethod
    def body(text):
        return "".join(line for line in text.splitlines(keepends=True) if not line.startswith("//"))


if __name__ == "__main__":
    unittest.main()
