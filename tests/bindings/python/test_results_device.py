"""New results of hgemm.matmul() for PyTorch's CUDA tensors. Needs a CUDA driver, such as the virtual one."""

import sys
import unittest

try:
    import torch
except ModuleNotFoundError:
    print("new results: Skipped\nPyTorch is not installed")
    sys.exit(77)
if not torch.cuda.is_available():
    print("new results: Skipped\nPyTorch sees no CUDA device")
    sys.exit(77)

import hgemm


class Results(unittest.TestCase):
    def setUp(self):
        numbers = torch.arange(3 * 8 * 16).reshape(3, 8, 16) % 7 - 3
        self.a, self.b = numbers.to(torch.float16), numbers[0, :4].T.to(torch.float16)
        self.want = torch.stack([x.float() @ self.b.float() for x in self.a])

    def test_on_the_device_of_the_operands(self):
        a, b = self.a.cuda(), self.b.cuda()
        for dtype in (None, torch.float32):
            d = hgemm.matmul(a, b, dtype=dtype)
            self.assertEqual((d.dtype, d.device), (dtype or a.dtype, a.device))
            self.assertTrue(torch.equal(d.cpu().float(), self.want))

    def test_memory_is_that_of_the_stream(self):
        """What was freed on another stream, on which work may still use it, is not the result's."""
        a, b, stream = self.a.cuda(), self.b.cuda(), torch.cuda.Stream()
        freed = torch.empty(3, 8, 4, dtype=torch.float16, device="cuda").data_ptr()
        d = hgemm.matmul(a, b, stream=stream)
        self.assertNotEqual(d.data_ptr(), freed)
        stream.synchronize()
        self.assertTrue(torch.equal(d.cpu().float(), self.want))
        address = d.data_ptr()
        del d
        with torch.cuda.stream(stream):
            self.assertEqual(torch.empty(3, 8, 4, dtype=torch.float16, device="cuda").data_ptr(), address)


if __name__ == "__main__":
    unittest.main()
