"""One PyTorch case in a fresh process: median step time (forward, loss, backward; no optimizer), its forward part and the
process's peak memory, as one JSON line. Run by peer.py."""

import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn.functional as F
from torch.utils.checkpoint import checkpoint_sequential

import models


def arguments():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model")
    parser.add_argument("--segments", type=int, default=0, help="checkpoint_sequential with so many; 0: none")
    parser.add_argument("--amp", default="off", choices=["off", "bf16"], help="bf16: forward under torch.autocast")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--steps", type=int, default=9, help="timed steps, after 3 to warm up")
    parser.add_argument("--channels-last", action="store_true")
    parser.add_argument("--fused-attention", action="store_true", help="scaled_dot_product_attention")
    parser.add_argument("--compile", action="store_true", help="torch.compile; needs a C++ compiler")
    return parser.parse_args()


def prepare(options):
    """A function that runs one step and returns seconds of the whole step and of its forward part, and the loss."""
    torch.set_num_threads(options.threads)
    model, x, target = models.case(options.model, options.fused_attention)
    if options.channels_last:
        model, x = model.to(memory_format=torch.channels_last), x.to(memory_format=torch.channels_last)
    if options.segments:
        run = lambda: checkpoint_sequential(model, options.segments, x, use_reentrant=False)
    else:
        whole = torch.compile(model) if options.compile else model
        run = lambda: whole(x)

    def step():
        model.zero_grad(set_to_none=True)
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=options.amp == "bf16"):
            loss = F.cross_entropy(run().float(), target)
        middle = time.perf_counter()
        loss.backward()
        return time.perf_counter() - start, middle - start, loss.item()

    return step, sum(p.numel() for p in model.parameters())


def main():
    options = arguments()
    step, parameters = prepare(options)
    for _ in range(3):
        step()
    steps, forwards, losses = zip(*(step() for _ in range(options.steps)))
    result = {
        "model": options.model,
        "segments": options.segments,
        "amp": options.amp,
        "parameters": parameters,
        "loss": losses[-1],
        "median": statistics.median(steps),
        "min": min(steps),
        "forward": statistics.median(forwards),
        "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
    }
    print(json.dumps(result))


main()
