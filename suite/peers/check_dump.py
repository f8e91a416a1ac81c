"""A step that `ckbench dump` wrote, done again by PyTorch: are loss, logits, every gradient and BatchNorm's state right?

    python check_dump.py FILE …

The models below are written from their papers and with PyTorch's own layers and autograd; nothing is ckbench's but the names in
the file. Dropout takes the file's masks. All is computed in float64. A tensor's error is the norm of the difference
over the norm of PyTorch's. A file of float64 (`--device ref`) must agree to 1e-10. A file of float32 is rounded, and deep networks
with BatchNorm over few values make much of that: so PyTorch's own step in float32 is held against float64 as well, and the file may be
off by four times as much as that is (or by 1e-5). Exit status 1 when something is further off."""

import argparse
import json
import struct
import sys

import torch
import torch.nn.functional as F

DTYPES = {"F64": torch.float64, "F32": torch.float32, "I64": torch.int64, "U8": torch.uint8}


def read(path):
    """All tensors of a safetensors file, and its metadata."""
    with open(path, "rb") as file:
        content = bytearray(file.read())
    (length,) = struct.unpack_from("<Q", content)
    header = json.loads(content[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    data = memoryview(content)[8 + length :]
    tensors = {}
    for name, t in header.items():
        begin, end = t["data_offsets"]
        tensors[name] = torch.frombuffer(data[begin:end], dtype=DTYPES[t["dtype"]]).reshape(t["shape"]).clone()
    return tensors, metadata


class Step:
    """The file's tensors as a model's own: weights require gradients, buffers may change, masks drop."""

    def __init__(self, tensors, metadata, dtype):
        real = lambda t: t.to(dtype) if t.is_floating_point() else t
        self.file = {name: real(t) for name, t in tensors.items()}
        self.weights = {n[5:]: self.file[n[5:]].clone().requires_grad_() for n in tensors if n.startswith("grad/")}
        self.state = {n[6:]: self.file[n[6:]].clone() for n in tensors if n.startswith("after/")}
        self.settings = dict(s.split("=") for s in metadata["model"].split(":", 1)[1].split(","))
        self.masks_used = set()

    def __getitem__(self, name):
        return self.weights[name]

    def number(self, setting):
        return int(self.settings[setting])

    def drop(self, x, *ops):
        """Dropout by the mask of the first of these ops that has one: the op itself, or the one that it is fused into."""
        for op in ops:
            mask = self.file.get("mask/" + op)
            if mask is not None:
                self.masks_used.add("mask/" + op)
                return x * mask / (1 - float(self.settings["dropout"]))
        return x

    def linear(self, x, name):
        return F.linear(x, self[name + ".weight"], self[name + ".bias"])

    def conv(self, x, name, stride=1):
        weight = self[name + ".weight"]
        return F.conv2d(x, weight, self.weights.get(name + ".bias"), stride, weight.shape[-1] // 2)

    def batchnorm(self, x, name):
        """In training: also moves the running statistics."""
        self.state[name + ".num_batches_tracked"] += 1
        mean, variance = self.state[name + ".running_mean"], self.state[name + ".running_var"]
        return F.batch_norm(x, mean, variance, self[name + ".weight"], self[name + ".bias"], True, 0.1, 1e-5)


# ---- cnn ------------------------------------------------------------------------------------------------------------------

BLOCKS = {18: (2, 2, 2, 2), 34: (3, 4, 6, 3), 50: (3, 4, 6, 3), 101: (3, 4, 23, 3), 152: (3, 8, 36, 3)}
VGG = {11: (1, 1, 2, 2, 2), 13: (2, 2, 2, 2, 2), 16: (2, 2, 3, 3, 3), 19: (2, 2, 4, 4, 4)}


def basic(s, x, p, stride):
    x = F.relu(s.batchnorm(s.conv(x, p + "conv1", stride), p + "bn1"))
    return s.batchnorm(s.conv(x, p + "conv2"), p + "bn2")


def bottleneck(s, x, p, stride):
    x = F.relu(s.batchnorm(s.conv(x, p + "conv1"), p + "bn1"))
    x = F.relu(s.batchnorm(s.conv(x, p + "conv2", stride), p + "bn2"))
    return s.batchnorm(s.conv(x, p + "conv3"), p + "bn3")


def residual(s, x, depth):
    small = depth not in BLOCKS
    groups = BLOCKS.get(depth) or ((depth - 2) // 6,) * 3
    x = F.relu(s.batchnorm(s.conv(x, "conv1", 1 if small else 2), "bn1"))
    if not small:
        x = F.max_pool2d(x, 3, 2, 1)
    for group, blocks in enumerate(groups, 1):
        for i in range(blocks):
            p, stride = f"layer{group}.{i}.", 2 if group > 1 and i == 0 else 1
            around = x
            if p + "downsample.0.weight" in s.weights:
                around = s.batchnorm(s.conv(x, p + "downsample.0", stride), p + "downsample.1")
            x = F.relu((basic if depth in (18, 34) or small else bottleneck)(s, x, p, stride) + around)
    return s.linear(s.drop(x.mean((2, 3)), "dropout"), "fc")


def plain(s, x, depth):
    for group, convolutions in enumerate(VGG[depth], 1):
        for i in range(1, convolutions + 1):
            x = F.relu(s.batchnorm(s.conv(x, f"conv{group}_{i}"), f"bn{group}_{i}"))
        x = F.max_pool2d(x, 2)
    x = x.permute(0, 2, 3, 1).flatten(1)  # fc6's columns are in that order
    for i in (6, 7):
        x = s.drop(F.relu(s.linear(x, f"fc{i}")), f"drop{i}", f"fc{i}")
    return s.linear(x, "fc8")


def cnn(s):
    depth = s.number("depth")
    return (plain if depth in VGG else residual)(s, s.file["input"], depth)


# ---- transformer ----------------------------------------------------------------------------------------------------------


def conv1d(s, x, name):
    """Hugging Face's Conv1D: a linear layer whose weight is (in, out)."""
    return x @ s[name + ".weight"] + s[name + ".bias"]


def layernorm(s, x, name):
    return F.layer_norm(x, x.shape[-1:], s[name + ".weight"], s[name + ".bias"], 1e-5)


def attention(s, x, p, op):
    batch, tokens, width = x.shape
    heads = s.number("heads")
    q, k, v = (t.view(batch, tokens, heads, -1).transpose(1, 2) for t in conv1d(s, x, p + "c_attn").split(width, 2))
    scores = q @ k.transpose(2, 3) / (width // heads) ** 0.5
    future = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)
    weights = s.drop(scores.masked_fill(future, float("-inf")).softmax(-1), op + "attn_dropout")
    y = (weights @ v).transpose(1, 2).reshape(x.shape)
    return s.drop(conv1d(s, y, p + "c_proj"), op + "resid_dropout", op + "c_proj")


def transformer(s):
    ids, prefix = s.file["input"], "transformer."
    wte = s[prefix + "wte.weight"]
    x = s.drop(wte[ids] + s[prefix + "wpe.weight"][: ids.shape[1]], "drop")
    for i in range(s.number("layers")):
        p, op = f"{prefix}h.{i}.", f"h.{i}."
        x = x + attention(s, layernorm(s, x, p + "ln_1"), p + "attn.", op + "attn.")
        inside = F.gelu(conv1d(s, layernorm(s, x, p + "ln_2"), p + "mlp.c_fc"), approximate="tanh")
        x = x + s.drop(conv1d(s, inside, p + "mlp.c_proj"), op + "mlp.dropout", op + "mlp.c_proj")
    return layernorm(s, x, prefix + "ln_f") @ wte.T


# ---- mlp ------------------------------------------------------------------------------------------------------------------


def mlp(s):
    x, layers = s.file["input"], s.number("layers")
    gelu = {"gelu": "tanh", "gelu-erf": "none"}.get(s.settings["activation"])
    for i in range(1, layers):
        x = s.linear(x, f"fc{i}")
        x = F.gelu(x, approximate=gelu) if gelu else F.relu(x)
        x = s.drop(x, f"fc{i}.dropout", f"fc{i}")
    return s.linear(x, f"fc{layers}")


# ---- comparing ------------------------------------------------------------------------------------------------------------


def run(tensors, metadata, dtype):
    """All that the step leaves behind, by kind and name in the file."""
    step = Step(tensors, metadata, dtype)
    logits = {"mlp": mlp, "cnn": cnn, "transformer": transformer}[metadata["model"].split(":")[0]](step)
    loss = F.cross_entropy(logits.flatten(0, -2), step.file["target"].flatten())
    loss.backward()
    result = {"loss": {"loss": loss.detach()}, "logits": {"logits": logits.detach()}}
    result["gradients"] = {"grad/" + n: w.grad for n, w in step.weights.items()}
    result["buffers"] = {"after/" + n: t for n, t in step.state.items()}
    return result, step.masks_used


def errors(ours, theirs):
    """The error of each tensor of a kind: norm of the difference over norm of PyTorch's. A gradient that is zero but for rounding
    (that of a bias before BatchNorm) has no scale of its own and takes the median of all gradients'."""
    scales = {n: t.double().norm().item() for n, t in theirs.items()}
    usual = sorted(scales.values())[len(scales) // 2]
    found = {}
    for name, t in theirs.items():
        o = ours[name]
        if o.shape != t.shape:
            found[name] = float("inf")
        elif not t.is_floating_point():
            found[name] = 0.0 if torch.equal(o, t) else float("inf")
        else:
            scale = scales[name] if scales[name] > 1e-12 * usual else usual
            found[name] = (o.double() - t).norm().item() / (scale or 1.0)
    return found


def check(path):
    tensors, metadata = read(path)
    exact, masks_used = run(tensors, metadata, torch.float64)
    masks = {n for n in tensors if n.startswith("mask/")}
    single = tensors["loss"].dtype == torch.float32
    rounded = run(tensors, metadata, torch.float32)[0] if single else None
    print(f"{path}: {metadata['model']}, plan {metadata['plan']}")
    print(f"  {len(tensors)} tensors, {len(masks)} masks, loss {exact['loss']['loss']:.9g}")
    good = masks == masks_used
    if not good:
        print(f"  WRONG: masks that nothing here takes: {sorted(masks - masks_used)}")
    for kind, theirs in exact.items():
        if not theirs:
            continue
        found = errors(tensors, theirs)
        own = errors(rounded[kind], theirs) if single else {}
        worst, floor = max(found, key=found.get), max(own.values(), default=0)
        fine = found[worst] <= (max(1e-5, 4 * floor) if single else 1e-10)
        good = good and fine
        beside = f", PyTorch's in float32 {floor:.1e}" if single else ""
        print(f"  {kind:9} {len(found):4}: largest error {found[worst]:.1e} ({worst}){beside}{'' if fine else '  WRONG'}")
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    results = [check(path) for path in parser.parse_args().files]
    sys.exit(0 if all(results) else 1)


main()
