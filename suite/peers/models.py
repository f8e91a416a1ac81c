"""The cases in PyTorch, as one of its users would write them. Each is an nn.Sequential of stages, so that
torch.utils.checkpoint.checkpoint_sequential applies. Layers, sizes and batch are those of ckbench's preset of the case."""

import torch
import torch.nn as nn
import torch.nn.functional as F


class Mlp(nn.Sequential):
    def __init__(self, layers=8, width=1024, inputs=1024, classes=1000):
        sizes = [inputs] + [width] * (layers - 1)
        hidden = [nn.Sequential(nn.Linear(i, o), nn.ReLU()) for i, o in zip(sizes, sizes[1:])]
        super().__init__(*hidden, nn.Linear(width, classes))


def conv_bn(inputs, outputs, size, stride=1):
    return nn.Sequential(
        nn.Conv2d(inputs, outputs, size, stride, size // 2, bias=False), nn.BatchNorm2d(outputs)
    )


class Residual(nn.Module):
    """y = relu(inside(x) + x), with a 1x1 convolution around where the shape changes."""

    def __init__(self, inside, inputs, outputs, stride):
        super().__init__()
        self.inside = inside
        self.around = conv_bn(inputs, outputs, 1, stride) if stride != 1 or inputs != outputs else nn.Identity()

    def forward(self, x):
        return F.relu(self.inside(x) + self.around(x), inplace=True)


def basic(inputs, width, stride):
    inside = nn.Sequential(conv_bn(inputs, width, 3, stride), nn.ReLU(inplace=True), conv_bn(width, width, 3))
    return Residual(inside, inputs, width, stride), width


def bottleneck(inputs, width, stride):
    relu = nn.ReLU(inplace=True)
    inside = nn.Sequential(
        conv_bn(inputs, width, 1), relu, conv_bn(width, width, 3, stride), relu, conv_bn(width, 4 * width, 1)
    )
    return Residual(inside, inputs, 4 * width, stride), 4 * width


class Resnet(nn.Sequential):
    def __init__(self, block, groups, width=64, classes=1000, small=False):
        stem = [conv_bn(3, width, 3 if small else 7, 1 if small else 2), nn.ReLU(inplace=True)]
        stages = [nn.Sequential(*stem, *([] if small else [nn.MaxPool2d(3, 2, 1)]))]
        channels = width
        for group, blocks in enumerate(groups):
            for i in range(blocks):
                stage, channels = block(channels, width << group, 2 if i == 0 and group > 0 else 1)
                stages.append(stage)
        head = nn.Sequential(nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, classes))
        super().__init__(*stages, head)


class Attention(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.heads, self.fused = heads, fused
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        split = (batch, tokens, self.heads, width // self.heads)
        q, k, v = (t.view(split).transpose(1, 2) for t in self.qkv(x).split(width, 2))
        if self.fused:
            y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        else:
            scores = (q @ k.transpose(-2, -1)) * split[-1] ** -0.5
            keep = torch.ones(tokens, tokens, dtype=torch.bool).tril()
            y = F.softmax(scores.masked_fill(~keep, float("-inf")), -1) @ v
        return self.out(y.transpose(1, 2).reshape(x.shape))


class Block(nn.Module):
    def __init__(self, width, heads, fused):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(width), Attention(width, heads, fused)
        self.norm2 = nn.LayerNorm(width)
        self.mlp = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Embedding(nn.Module):
    def __init__(self, vocab, tokens, width):
        super().__init__()
        self.token, self.position = nn.Embedding(vocab, width), nn.Embedding(tokens, width)

    def forward(self, ids):
        return self.token(ids) + self.position(torch.arange(ids.shape[1]))


class Head(nn.Module):
    def __init__(self, width, vocab, tied):
        super().__init__()
        self.norm, self.out = nn.LayerNorm(width), nn.Linear(width, vocab, bias=False)
        self.out.weight = tied

    def forward(self, x):
        return self.out(self.norm(x)).flatten(0, 1)


class Gpt(nn.Sequential):
    def __init__(self, layers, width, heads, positions, vocab, fused):
        embedding = Embedding(vocab, positions, width)
        blocks = [Block(width, heads, fused) for _ in range(layers)]
        super().__init__(embedding, *blocks, Head(width, vocab, embedding.token.weight))


def images(batch, size, classes):
    return torch.randn(batch, 3, size, size), torch.randint(0, classes, (batch,))


def tokens(batch, length, vocab):
    return torch.randint(0, vocab, (batch, length)), torch.randint(0, vocab, (batch * length,))


def case(name, fused):
    """The model, a batch and its targets."""
    torch.manual_seed(0)
    match name:
        case "mlp":
            return Mlp(), torch.randn(256, 1024), torch.randint(0, 1000, (256,))
        case "resnet18":
            return Resnet(basic, (2, 2, 2, 2)), *images(8, 224, 1000)
        case "resnet50":
            return Resnet(bottleneck, (3, 4, 6, 3)), *images(8, 224, 1000)
        case "resnet20":
            return Resnet(basic, (3, 3, 3), 16, 10, small=True), *images(128, 32, 10)
        case "gpt-char":
            return Gpt(6, 384, 6, 256, 256, fused), *tokens(8, 256, 256)
        case "gpt-mini":
            return Gpt(6, 384, 6, 256, 50257, fused), *tokens(4, 256, 50257)
        case "gpt2":
            return Gpt(12, 768, 12, 1024, 50257, fused), *tokens(2, 256, 50257)
    raise SystemExit(f"models.py: no case {name}")
