"""The selective scan: equal to the plain loop with its gradients, linear in time and in memory."""

import pytest
import torch
import torch.nn.functional as F
from torch.utils._python_dispatch import TorchDispatchMode

from companion.models import scan
from companion.models.scan import causal_conv, choose_scan, plain_scan, seg_scan
from companion.models.triton_scan import triton_scan

from .scan_cases import draw, results

LENGTHS = (0, 1, 2, 3, 4, 5, 63, 64, 65)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("batch", [(), (1,), (2,), (2, 3)], ids=str)
def test_equals_the_plain_loop_with_gradients(length, batch):
    inputs = draw(length, batch=batch)
    fast, plain = results(seg_scan, inputs), results(plain_scan, inputs)
    torch.testing.assert_close(fast, plain, rtol=1e-12, atol=1e-12)


def in_members(form, inputs):
    """What `form` gives for each member of a population alone, put together again."""
    alone = []
    for i in range(inputs[-1].shape[0]):
        dt, u, A, B, C, h = inputs
        alone.append(form(dt[:, i], u[:, i], A[i, 0], B[:, i], C[:, i], h[i]))
    ys, hs = zip(*alone, strict=True)
    return torch.stack(ys, 1), torch.stack(hs)


@pytest.mark.parametrize("form", [seg_scan, plain_scan])
@pytest.mark.parametrize("members", [1, 3])
def test_population_is_its_members(form, members):
    for length in (1, 4, 9):
        dt, u, A, B, C, h = draw(length, batch=(members, 2))
        rates = torch.stack([(i + 1) * A.detach() for i in range(members)])[:, None]
        inputs = [dt, u, rates.requires_grad_(), B, C, h]
        together = results(form, inputs)
        alone = results(lambda *x: in_members(form, x), inputs)
        torch.testing.assert_close(together, alone, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("segment", [1, 2, 7, 100])
def test_segments_of_any_length(monkeypatch, segment):
    monkeypatch.setattr(scan, "SEGMENT", segment)
    for length in (1, 6, 7, 8, 15):
        inputs = draw(length)
        torch.testing.assert_close(results(seg_scan, inputs), results(plain_scan, inputs))


def test_gradients_are_those_of_finite_differences():
    assert torch.autograd.gradcheck(seg_scan, draw(5, batch=(1,), channels=2))
    rng = torch.Generator().manual_seed(3)
    shapes = ((6, 2, 2), (3, 2), (2,))
    inputs = [torch.randn(shape, generator=rng, dtype=torch.float64) for shape in shapes]
    assert torch.autograd.gradcheck(causal_conv, [x.requires_grad_() for x in inputs])


def test_decay_that_underflows_forgets_and_gives_no_nan():
    dt, u, A, B, C, h = draw(4, dtype=torch.float32)
    found = results(seg_scan, [1e4 * dt.detach().requires_grad_(), u, A, B, C, h])
    assert all(x.isfinite().all() for x in found)


def test_in_single_precision_as_exact_as_the_loop():
    inputs = draw(400, batch=(4,), channels=8, dtype=torch.float32)
    exact = plain_scan(*(x.double() for x in inputs))[0]
    errors = [(form(*inputs)[0] - exact).abs().max() for form in (seg_scan, plain_scan)]
    assert errors[0] < 2 * errors[1] < 1e-4 * exact.abs().max()


class Count(TorchDispatchMode):
    """Counts the operations that are run, and the numbers they return in memory of their own."""

    def __init__(self):
        super().__init__()
        self.operations = self.numbers = 0

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        out = func(*args, **(kwargs or {}))
        self.operations += 1
        if "empty" in func.name() or "clone" in func.name():
            self.numbers += out.numel()
        return out


def test_work_and_memory_grow_linearly():
    """PyTorch's derivative of indexing a tensor by each step fills all steps with zeros each time;
    then memory traffic grows as the square of the length."""
    counts = []
    for length in (40, 80, 120):
        inputs = draw(length, channels=64, n=8)
        with Count() as count:
            results(seg_scan, inputs)
        counts.append(count)
    a, b, c = counts
    assert c.operations - b.operations == b.operations - a.operations < 50 * 40
    per_step = 2 * 8 * 64  # numbers in h
    assert c.numbers - b.numbers == b.numbers - a.numbers < 40 * per_step


@pytest.mark.parametrize("length", [1, 2, 5, 63])
def test_convolution_equals_that_of_torch(length):
    rng = torch.Generator().manual_seed(1)
    inputs = [
        torch.randn(shape, generator=rng, dtype=torch.float64).requires_grad_()
        for shape in ((length + 3, 2, 3), (4, 3), (3,))
    ]
    x, weight, bias = inputs
    ours = causal_conv(*inputs)
    torchs = F.conv1d(x.permute(1, 2, 0), weight.mT[:, None], bias, groups=3).permute(2, 0, 1)
    torch.testing.assert_close(ours, torchs)
    pairs = [torch.autograd.grad(y.square().sum(), inputs) for y in (ours, torchs)]
    torch.testing.assert_close(*pairs)


def test_convolution_of_a_population_is_that_of_its_members():
    rng = torch.Generator().manual_seed(1)
    shapes = ((8, 3, 2, 5), (4, 3, 1, 5), (3, 1, 5))
    inputs = [torch.randn(s, generator=rng, dtype=torch.float64).requires_grad_() for s in shapes]
    x, weight, bias = inputs
    together = causal_conv(*inputs)
    alone = [causal_conv(x[:, i], weight[:, i, 0], bias[i, 0]) for i in range(3)]
    pairs = [
        torch.autograd.grad(sum(y.square().sum() for y in ys), inputs) for ys in (together, alone)
    ]
    torch.testing.assert_close(*pairs, rtol=1e-12, atol=1e-12)


CPU, CUDA = torch.device("cpu"), torch.device("cuda")


SET = "COMPANION_SCAN={} is set"
CHOICES = [
    ("", CPU, "triton", seg_scan, "the device is no CUDA GPU"),
    ("", CUDA, "triton", triton_scan, "a CUDA GPU, and Triton is installed"),
    ("", CUDA, None, seg_scan, "a CUDA GPU, but Triton is not installed"),
    ("segments", CUDA, "triton", seg_scan, SET.format("segments")),
    ("triton", CUDA, "triton", triton_scan, SET.format("triton")),
    ("mamba-ssm", CUDA, "selective_scan_cuda", scan.published_scan, SET.format("mamba-ssm")),
]


@pytest.mark.parametrize(("wanted", "device", "there", "run", "reason"), CHOICES)
def test_which_scan_and_why(wanted, device, there, run, reason, monkeypatch):
    monkeypatch.setenv("COMPANION_SCAN", wanted)
    monkeypatch.setattr(scan, "_installed", lambda module: module == there)
    assert choose_scan(device) == (run, reason)


REFUSED = [
    ("Triton", CUDA, "got COMPANION_SCAN='Triton', expected one of: segments, triton, mamba-ssm"),
    ("triton", CPU, "got COMPANION_SCAN=triton on cpu, expected cuda and the module triton"),
    ("triton", CUDA, "got COMPANION_SCAN=triton on cuda, expected cuda and the module triton"),
    ("mamba-ssm", CUDA, "expected cuda and the module selective_scan_cuda, or COMPANION_SCAN=seg"),
]


@pytest.mark.parametrize(("wanted", "device", "message"), REFUSED)
def test_refuses_a_scan_that_cannot_run(wanted, device, message, monkeypatch):
    monkeypatch.setenv("COMPANION_SCAN", wanted)
    monkeypatch.setattr(scan, "_installed", lambda module: False)
    with pytest.raises(ValueError, match=message):
        choose_scan(device)
