"""Networks that ranks and the unsharded run share: biases are there and not zero, and no size divides evenly."""

from __future__ import annotations

import itertools

import torch
from torch import nn


def mlp(dtype=torch.float64, widths=(7, 13, 11, 5)):
    """Linear layers with tanh between: 7 -> 13 -> 11 -> 5 unless other widths are given."""
    layers = []
    for wide_in, wide_out in itertools.pairwise(widths):
        layers += [nn.Linear(wide_in, wide_out, dtype=dtype), nn.Tanh()]
    return nn.Sequential(*layers[:-1])


class Forked(nn.Module):
    """A trunk and two branches; the caller says which branches take part, so the other's parameters go unused."""

    def __init__(self):
        super().__init__()
        self.trunk = nn.Linear(7, 13, dtype=torch.float64)
        self.left = nn.Linear(13, 5, dtype=torch.float64)
        self.right = nn.Linear(13, 5, dtype=torch.float64)

    def forward(self, x, branches):
        hidden = self.trunk(x).tanh()
        return sum(getattr(self, branch)(hidden) for branch in branches)


def normed():
    """A batch norm in the middle: buffers that change in every forward."""
    return nn.Sequential(
        nn.Linear(7, 13, dtype=torch.float64),
        nn.BatchNorm1d(13, dtype=torch.float64),
        nn.Tanh(),
        nn.Linear(13, 5, dtype=torch.float64),
    )


class Transformer(nn.Module):
    """One block: tokens of a vocabulary of 15, 6 heads of 2, a feed-forward of 18. In: [batch, time]; out: logits."""

    def __init__(self, vocabulary=15, width=12, hidden=18):
        super().__init__()
        like = {"dtype": torch.float64}
        self.embedding = nn.Embedding(vocabulary, width, **like)
        self.norm_before = nn.LayerNorm(width, **like)
        self.query = nn.Linear(width, width, **like)
        self.key = nn.Linear(width, width, bias=False, **like)  # softmax does not see a bias of the keys
        self.value = nn.Linear(width, width, **like)
        self.out = nn.Linear(width, width, **like)
        self.norm_after = nn.LayerNorm(width, **like)
        self.up = nn.Linear(width, hidden, **like)
        self.down = nn.Linear(hidden, width, **like)
        self.norm_last = nn.LayerNorm(width, **like)
        self.head = nn.Linear(width, vocabulary, **like)

    def forward(self, tokens):
        x = self.embedding(tokens)
        normed = self.norm_before(x)
        heads = [part(normed).unflatten(-1, (-1, 2)).transpose(1, 2) for part in (self.query, self.key, self.value)]
        attended = nn.functional.scaled_dot_product_attention(*heads, is_causal=True)
        x = x + self.out(attended.transpose(1, 2).flatten(2))
        x = x + self.down(nn.functional.gelu(self.up(self.norm_after(x))))
        return self.head(self.norm_last(x))


def cross_entropy(logits, targets):
    """Summed over tokens, and divided by a number that is not their count."""
    return nn.functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), reduction="sum") / 10


MODELS = {"mlp": mlp, "forked": Forked, "normed": normed, "transformer": Transformer}


def load(name, state, **options):
    """The network `name` with the parameters and buffers of `state`."""
    model = MODELS[name](**options)
    model.load_state_dict(state)
    return model


def loss_of(output, batch):
    """A weighted sum of squares: a sum, not a mean, so that every scale shows."""
    return (batch["weight"].to(output.dtype) * (output - batch["target"]).square()).sum()


def sgd(params):
    """Momentum keeps a trace of every gradient's scale, which Adam would divide out."""
    return torch.optim.SGD(params, lr=0.02, momentum=0.9)


def copied(named):
    """{name: a copy, without the wrapper's prefix}."""
    return {name.removeprefix("module."): value.detach().clone() for name, value in named}


def gradients(named):
    return copied((name, param.grad) for name, param in named if param.grad is not None)
