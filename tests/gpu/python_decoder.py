"""A small decoder of Llama's shape with random weights, of torch's own modules only."""
import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, hidden, heads, kv_heads):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, hidden // heads
        self.q = nn.Linear(hidden, hidden, bias=False)
        self.k = nn.Linear(hidden, kv_heads * self.size, bias=False)
        self.v = nn.Linear(hidden, kv_heads * self.size, bias=False)
        self.o = nn.Linear(hidden, hidden, bias=False)

    def forward(self, x, cos, sin):
        batch, length, _ = x.shape
        q = turned(self.q(x).view(batch, length, self.heads, self.size), cos, sin).transpose(1, 2)
        k = turned(self.k(x).view(batch, length, self.kv_heads, self.size), cos, sin).transpose(1, 2)
        v = self.v(x).view(batch, length, self.kv_heads, self.size).transpose(1, 2)
        repeat = self.heads // self.kv_heads
        y = F.scaled_dot_product_attention(q, k.repeat_interleave(repeat, 1), v.repeat_interleave(repeat, 1), is_causal=True)
        return self.o(y.transpose(1, 2).reshape(batch, length, -1))


def turned(x, cos, sin):
    left, right = x.chunk(2, dim=-1)
    return torch.cat((left * cos - right * sin, right * cos + left * sin), dim=-1)


class Layer(nn.Module):
    def __init__(self, hidden, heads, kv_heads, inner):
        super().__init__()
        self.before, self.attention = nn.RMSNorm(hidden, eps=1e-5), Attention(hidden, heads, kv_heads)
        self.between = nn.RMSNorm(hidden, eps=1e-5)
        self.gate, self.up = nn.Linear(hidden, inner, bias=False), nn.Linear(hidden, inner, bias=False)
        self.down = nn.Linear(inner, hidden, bias=False)

    def forward(self, x, cos, sin):
        x = x + self.attention(self.before(x), cos, sin)
        y = self.between(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Decoder(nn.Module):
    def __init__(self, vocabulary=4096, hidden=1024, heads=16, kv_heads=4, inner=2816, layers=3):
        super().__init__()
        self.embed = nn.Embedding(vocabulary, hidden)
        self.layers = nn.ModuleList(Layer(hidden, heads, kv_heads, inner) for _ in range(layers))
        self.norm = nn.RMSNorm(hidden, eps=1e-5)
        self.head = nn.Linear(hidden, vocabulary, bias=False)
        self.half = hidden // heads // 2

    def forward(self, tokens):
        x = self.embed(tokens)
        places = torch.arange(tokens.shape[1], device=tokens.device, dtype=torch.float32)
        angles = torch.outer(places, 10000.0 ** (-torch.arange(self.half, device=tokens.device, dtype=torch.float32) / self.half))
        cos, sin = angles.cos()[:, None].to(x.dtype), angles.sin()[:, None].to(x.dtype)
        for layer in self.layers:
            x = layer(x, cos, sin)
        return self.head(self.norm(x))
