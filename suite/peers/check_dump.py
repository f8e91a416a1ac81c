"""A step that `ckbench dump` wrote, done again by PyTorch: are loss, logits, every gradient and BatchNorm's state right?

    python check_dump.py FILE …

The models below are written from their papers and with PyTorch's own layers and autograd; nothing is ckbench's but the names
in the file. Dropout takes the file's masks. All is computed in float64. A tensor's error is the norm of the difference over
the norm of PyTorch's. A file of float64 (`--device ref`) must agree to 1e-10. A file of float32 is rounded, and deep
networks with BatchNorm over few values make much of that: so PyTorch's own step in float32 is held against float64 as well,
and the file may be off by four times as much as that is (or by 1e-5).

A file of mixed precision (`--amp`) is held against PyTorch's own autocast in the same way, tensor by tensor: it may be off
by twice as much as that tensor is there, or by one rounding to 16 bits. Where rounding puts a ReLU's input on the other side
of zero, a whole element of the gradient comes or goes, here or there by chance: so as much is allowed besides as it makes
when all go whose input is within four roundings of zero. Logits must be numbers of the 16-bit type, as they are there, and the
loss must be that of the file's own logits in float32. Exit status 1 when something is further off."""

import argparse
import json
import struct
import sys

import torch
import torch.nn.functional as F

DTYPES = {
    "F64": torch.float64,
    "F32": torch.float32,
    "BF16": torch.bfloat16,
    "F16": torch.float16,
    "I64": torch.int64,
    "U8": torch.uint8,
}
# The metadata's amp: what autocast takes.
AMP = {"bf16": torch.bfloat16, "fp16": torch.float16}


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


class OtherSide(torch.autograd.Function):
    """ReLU; its gradient as if inputs within `near` root mean squares of zero lay on the other side of it."""

    @staticmethod
    def forward(ctx, x, near):
        ctx.save_for_backward((x > 0) ^ (x.abs() < near * x.square().mean().sqrt()))
        return F.relu(x)

    @staticmethod
    def backward(ctx, gradient):
        return gradient * ctx.saved_tensors[0], None


class Step:
    """The file's tensors as a model's own: weights require gradients, buffers may change, masks drop."""

    def __init__(self, tensors, metadata, dtype, near=0.0):
        self.near = near
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

    def relu(self, x):
        return OtherSide.apply(x, self.near) if self.near else F.relu(x)

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
    x = s.relu(s.batchnorm(s.conv(x, p + "conv1", stride), p + "bn1"))
    return s.batchnorm(s.conv(x, p + "conv2"), p + "bn2")


def bottleneck(s, x, p, stride):
    x = s.relu(s.batchnorm(s.conv(x, p + "conv1"), p + "bn1"))
    x = s.relu(s.batchnorm(s.conv(x, p + "conv2", stride), p + "bn2"))
    return s.batchnorm(s.conv(x, p + "conv3"), p + "bn3")


def residual(s, x, depth):
    small = depth not in BLOCKS
    groups = BLOCKS.get(depth) or ((depth - 2) // 6,) * 3
    x = s.relu(s.batchnorm(s.conv(x, "conv1", 1 if small else 2), "bn1"))
    if not small:
        x = F.max_pool2d(x, 3, 2, 1)
    for group, blocks in enumerate(groups, 1):
        for i in range(blocks):
            p, stride = f"layer{group}.{i}.", 2 if group > 1 and i == 0 else 1
            around = x
            if p + "downsample.0.weight" in s.weights:
                around = s.batchnorm(s.conv(x, p + "downsample.0", stride), p + "downsample.1")
            x = s.relu((basic if depth in (18, 34) or small else bottleneck)(s, x, p, stride) + around)
    return s.linear(s.drop(x.mean((2, 3)), "dropout"), "fc")


def plain(s, x, depth):
    for group, convolutions in enumerate(VGG[depth], 1):
        for i in range(1, convolutions + 1):
            x = s.relu(s.batchnorm(s.conv(x, f"conv{group}_{i}"), f"bn{group}_{i}"))
        x = F.max_pool2d(x, 2)
    x = x.permute(0, 2, 3, 1).flatten(1)  # fc6's columns are in that order
    for i in (6, 7):
        x = s.drop(s.relu(s.linear(x, f"fc{i}")), f"drop{i}", f"fc{i}")
    return s.linear(x, "fc8")


def cnn(s):
    depth = s.number("depth")
    return (plain if depth in VGG else residual)(s, s.file["input"], depth)


# ---- transformer ----------------------------------------------------------------------------------------------------------


def conv1d(s, x, name):
    """Hugging Face's Conv1D: a linear layer whose weight is (in, out). One addmm, as there, so that autocast sees one op."""
    y = torch.addmm(s[name + ".bias"], x.flatten(0, -2), s[name + ".weight"])
    return y.view(*x.shape[:-1], -1)


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
        x = F.gelu(x, approximate=gelu) if gelu else s.relu(x)
        x = s.drop(x, f"fc{i}.dropout", f"fc{i}")
    return s.linear(x, f"fc{layers}")


# ---- comparing ------------------------------------------------------------------------------------------------------------


def run(tensors, metadata, dtype, amp=None, near=0.0):
    """All that the step leaves behind, by kind and name in the file. amp: autocast's dtype. near: OtherSide's."""
    step = Step(tensors, metadata, dtype, near)
    model = {"mlp": mlp, "cnn": cnn, "transformer": transformer}[metadata["model"].split(":")[0]]
    with torch.autocast("cpu", amp, enabled=amp is not None):
        logits = model(step)
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


def limits(tensors, metadata, exact, amp):
    """How far off each tensor of each kind may be, and how far off PyTorch's own step in the file's precision is."""
    if tensors["loss"].dtype == torch.float64 and not amp:
        return {kind: {name: 1e-10 for name in of_kind} for kind, of_kind in exact.items()}, {}
    rounded = run(tensors, metadata, torch.float32, amp)[0]
    own = {kind: errors(rounded[kind], of_kind) for kind, of_kind in exact.items()}
    if not amp:
        return {k: dict.fromkeys(e, max(1e-5, 4 * max(e.values()))) for k, e in own.items()}, own
    rounding = torch.finfo(amp).eps / 2
    other_side = run(tensors, metadata, torch.float64, near=4 * rounding)[0]
    chance = {kind: errors(other_side[kind], exact[kind]) for kind in own}
    return {k: {n: max(rounding, 2 * e[n]) + chance[k][n] for n in e} for k, e in own.items()}, own


def check_loss(tensors, amp):
    """Mixed precision: logits hold 16-bit numbers, widened where no fusion is, and the loss is theirs but for its own rounding."""
    logits, loss = tensors["logits"], tensors["loss"]
    exact = F.cross_entropy(logits.double().flatten(0, -2), tensors["target"].flatten())
    off = abs(loss.item() / exact.item() - 1)
    good = torch.equal(logits.to(amp).to(logits.dtype), logits) and off < 1e-6
    print(f"  logits are {str(logits.dtype)[6:]}, the loss is off theirs by {off:.1e}{'' if good else '  WRONG'}")
    return good


def middle(errors_of_kind):
    return sorted(errors_of_kind.values())[len(errors_of_kind) // 2]


def check_kind(kind, found, allowed, own, amp):
    """Prints a line; whether every tensor of the kind is within its limit."""
    largest, nearest = max(found, key=found.get), max(found, key=lambda n: found[n] / allowed[n])
    fine = found[nearest] <= allowed[nearest]
    text = f"largest error {found[largest]:.1e} ({largest})"
    if own:
        text += f", PyTorch's {'under autocast' if amp else 'in float32'} {max(own.values()):.1e}"
    if amp and len(found) > 1:
        text += f"; median {middle(found):.1e}, {middle(own):.1e}"
    if amp or not fine:
        text += f"; nearest to its limit: {nearest}, {found[nearest]:.1e} of {allowed[nearest]:.1e}"
    print(f"  {kind:9} {len(found):4}: {text}{'' if fine else '  WRONG'}")
    return fine


def check(path):
    tensors, metadata = read(path)
    amp = AMP.get(metadata.get("amp"))
    exact, masks_used = run(tensors, metadata, torch.float64)
    exact = {kind: of_kind for kind, of_kind in exact.items() if of_kind}
    allowed, own = limits(tensors, metadata, exact, amp)
    masks = {n for n in tensors if n.startswith("mask/")}
    print(f"{path}: {metadata['model']}, plan {metadata['plan']}{', amp ' + metadata['amp'] if amp else ''}")
    print(f"  {len(tensors)} tensors, {len(masks)} masks, loss {exact['loss']['loss']:.9g}")
    good = masks == masks_used
    if not good:
        print(f"  WRONG: masks that nothing here takes: {sorted(masks - masks_used)}")
    if amp:
        good = check_loss(tensors, amp) and good
    for kind, theirs in exact.items():
        good = check_kind(kind, errors(tensors, theirs), allowed[kind], own.get(kind), amp) and good
    return good


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", metavar="FILE")
    results = [check(path) for path in parser.parse_args().files]
    sys.exit(0 if all(results) else 1)


main()
