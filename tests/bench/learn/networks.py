"""The files network_*.def of arch/sm90/choose/<card>, as correction.cpp includes them: read and written."""
import re
import textwrap
from pathlib import Path
from typing import NamedTuple

SM90 = Path(__file__).resolve().parents[3] / "arch" / "sm90"
UNITS, TRAITS = map(int, re.search(r"units = (\d+), traits = (\d+);",
                                   (SM90 / "choose" / "correction.cpp").read_text()).groups())
FEATURES = re.findall(r"\w+", re.search(r"enum \{(.*?)\bcount\b", (SM90 / "choose" / "correction.hpp").read_text(),
                                        re.S)[1])


class Kernel(NamedTuple):
    name: str
    schedule: str
    tile_m: int
    tile_n: int
    cluster_m: int
    cluster_n: int
    ctas_per_sm: int

    def distance(self, other):
        """As by_kernel.hpp measures it: the schedule first, then the tile, then the cluster."""
        splits = self.schedule.startswith("SplitK") != other.schedule.startswith("SplitK")
        ctas = abs(self.cluster_m * self.cluster_n - other.cluster_m * other.cluster_n)
        return (10000 * splits + 1000 * (self.schedule != other.schedule) +
                10 * (abs(self.tile_m - other.tile_m) + abs(self.tile_n - other.tile_n)) +
                3 * (ctas + abs(self.ctas_per_sm - other.ctas_per_sm)) + (self.cluster_m != other.cluster_m))


def read_kernels(text):
    """The lines KERNEL of kernels.def, whose order numbers them."""
    rows = [re.split(r"\s*,\s*", row.strip()) for row in re.findall(r"^KERNEL \((.*)\)", text, re.M)]
    return [Kernel(name, schedule, *map(int, (m, n, cluster_m, cluster_n, ctas)))
            for name, schedule, m, n, _stages, _consumers, cluster_m, cluster_n, ctas in rows]


KERNELS = read_kernels((SM90 / "kernels.def").read_text())


def nearest(kernel, names):
    """The name among `names` of the kernel that is most like this one."""
    return min((k for k in KERNELS if k.name in names), key=kernel.distance).name


class Network:
    """One file. Those of a card that shares another's network have biases and kernels alone."""

    def __init__(self, head, biases, kernels, feature_weights=(), trait_weights=(), shares=()):
        self.head = head                                            # comment lines, without the slashes
        self.feature_weights, self.trait_weights = feature_weights, trait_weights  # a list of UNITS each
        self.biases, self.shares = biases, shares
        self.kernels = kernels                                      # name -> TRAITS numbers

    @staticmethod
    def read(path):
        text = path.read_text()
        head = re.match(r"(//.*\n)*", text)[0]
        body = text[len(head):]
        kernels = {name: floats(numbers) for name, numbers in re.findall(r'\{"(\w+)", \{(.*?)\}', body, re.S)}
        lines = [floats(line) for line in re.findall(r"\{([^{}/]*f)\}", body[:body.index('"')])]
        head = [line.removeprefix("//").strip() for line in head.splitlines()]
        if len(lines) == 1:
            return Network(head, lines[0], kernels)
        *weights, biases, shares = lines
        return Network(head, biases, kernels, weights[:len(FEATURES)], weights[len(FEATURES):], shares)

    def numbers_of(self, kernel):
        """The kernel's own, else its nearest relative's."""
        return self.kernels[kernel.name if kernel.name in self.kernels else nearest(kernel, self.kernels)]

    def text(self):
        """Kernels stand in the order of kernels.def; those that it does not have are left out."""
        rows = (f'{{"{k.name}", {braced(self.kernels[k.name])}}}' for k in KERNELS if k.name in self.kernels)
        head = "".join(f"// {line}\n" for paragraph in self.head for line in textwrap.wrap(paragraph, 107))
        if len(self.shares) == 0:
            return f"{head}{{{braced(self.biases)},\n {table(rows)}}}\n"
        return head + "{" + ",\n     ".join((
            table(f"// {name}\n    {braced(w)}" for name, w in zip(FEATURES, self.feature_weights)),
            table(map(braced, self.trait_weights)), braced(self.biases), braced(self.shares), table(rows))) + "}\n"

    def write(self, path):
        path.write_text(self.text())


def floats(text):
    return [float(number) for number in re.findall(r"(-?\d+\.\d+)f", text)]


def braced(values):
    """Four decimals, twelve a line."""
    texts = [f"{v:.4f}f" for v in values]
    return "{" + ",\n     ".join(", ".join(texts[i:i + 12]) for i in range(0, len(texts), 12)) + "}"


def table(rows):
    return "{\n    " + ",\n    ".join(rows) + "}"
