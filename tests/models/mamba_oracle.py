"""Compares our Mamba with that of mamba-ssm in this process; prints what is equal.

    .venv/bin/python tests/models/mamba_oracle.py

Its reference scan computes in float32, so that is the precision here.
"""

import sys
from pathlib import Path

import torch

from companion.models import ModelConfig, State, build
from companion.models.scan import published_scan, seg_scan

SIZES = ((64, 16), (40, 5))  # width and state size
BATCH, LENGTH = 3, 37


def main():
    sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))
    import peers

    torch.manual_seed(0)  # mamba-ssm takes no generator
    published = peers.mamba_ssm()
    for width, state_size in SIZES:
        compare(published, width, state_size)


def compare(published, width, state_size):
    config = ModelConfig(vocab=7, classes=5, width=width, state_size=state_size)
    model = build("mamba", config, rng=torch.Generator().manual_seed(0))
    ours, theirs = model.blocks[0].mix, published(width, d_state=state_size)

    ours.load_state_dict(theirs.state_dict(), strict=True)
    with torch.no_grad():  # away from the special values that they start from
        for p in ours.parameters():
            p += 0.1 * torch.randn_like(p)
    theirs.load_state_dict(ours.state_dict(), strict=True)
    print(width, state_size, "weights", end=" ")

    x = torch.randn(BATCH, LENGTH, width)
    state = State(0, model.initial_state(BATCH).tensors)
    compared, inputs = [], [x.clone().requires_grad_(), x.clone().requires_grad_()]
    for mix, x in zip((lambda x: ours(x, state, None)[0], theirs), inputs, strict=True):
        compared.append(mix(x))
    close(*compared, 1e-6)
    print("answers", end=" ")

    weight = torch.randn_like(compared[0])
    pairs = [
        torch.autograd.grad((y * weight).sum(), [x, *module.parameters()])
        for y, x, module in zip(compared, inputs, (ours, theirs), strict=True)
    ]
    names = ["x", *(name for name, _ in ours.named_parameters())]
    theirs_by_name = dict(zip(["x", *dict(theirs.named_parameters())], pairs[1], strict=True))
    for name, gradient in zip(names, pairs[0], strict=True):
        close(gradient, theirs_by_name[name], 1e-5)
    print("gradients", end=" ")

    with torch.no_grad():
        conv, ssm = theirs.allocate_inference_cache(BATCH, LENGTH)
        for row in inputs[1].split(1, dim=1):
            theirs.step(row, conv, ssm)
        h, past = ours(inputs[0], state, None)[1]
        close(h, ssm.mT, 1e-5)
        close(past, conv[..., 1:].mT, 1e-5)  # theirs keeps one more input, which it never uses
    print("state", end=" ")
    compare_scans(width // 4, state_size)


def compare_scans(channels, n):
    """`published_scan` around the reference in the place of the CUDA kernels, by members too."""
    import mamba_ssm.ops.selective_scan_interface as interface

    interface.selective_scan_fn = interface.selective_scan_ref
    for members, batch in (((), (BATCH,)), ((2, 1), (2, BATCH))):
        shapes = [(LENGTH, *batch, size) for size in (channels, channels, n, n)]
        dt, u, B, C = (torch.randn(shape) for shape in shapes)
        A, h = -torch.rand(*members, n, channels), torch.zeros(*batch, n, channels)
        inputs = [x.requires_grad_() for x in (dt.abs(), u, A, B, C)]
        (y, end), (y_ref, end_ref) = seg_scan(*inputs, h), published_scan(*inputs, h)
        close(y, y_ref, 1e-5)
        close(end, end_ref, 1e-5)
        weight = torch.randn_like(y)
        pairs = [torch.autograd.grad((x * weight).sum(), inputs) for x in (y, y_ref)]
        for ours, theirs in zip(*pairs, strict=True):
            close(ours, theirs, 1e-5)
    try:
        published_scan(*inputs, h + 1)
    except ValueError as error:
        assert "got a first state that is not zero" in str(error)
        print("scans")


def close(a, b, tolerance):
    """Equal up to `tolerance` of the largest number."""
    torch.testing.assert_close(a, b, rtol=0.0, atol=tolerance * float(b.detach().abs().max()))


if __name__ == "__main__":
    main()
