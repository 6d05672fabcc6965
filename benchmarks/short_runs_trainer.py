"""Trains a small character model of Python's own source: one hidden layer over eight characters, Adam, numpy alone.

Its peak learning rate (`--lr`) is reached after a tenth of the steps, and falls to 0 at their end. `gain_by_budget.py`
runs it at several numbers of steps.
"""

import argparse
import sysconfig
from pathlib import Path

import numpy as np

parser = argparse.ArgumentParser()
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--steps", type=int, default=250)
parser.add_argument("--lr", type=float, default=0.008)
given = parser.parse_args()

rng = np.random.default_rng(given.seed)
stdlib = Path(sysconfig.get_path("stdlib"))
text = "".join((stdlib / name).read_text(encoding="utf-8") for name in ("argparse.py", "typing.py", "datetime.py"))
letters = sorted(set(text))
codes = np.searchsorted(letters, list(text))
cut, C, D, H, V, B = len(codes) * 9 // 10, 8, 16, 96, len(letters), 64
train, held_out = codes[:cut], codes[cut:]
p = {
    "embed": rng.normal(0, 0.1, (V, D)),
    "in": rng.normal(0, (C * D) ** -0.5, (C * D, H)),
    "in_b": np.zeros(H),
    "out": rng.normal(0, 0.02, (H, V)),
    "out_b": np.zeros(V),
}
m, v = ({key: np.zeros_like(each) for key, each in p.items()} for _ in range(2))


def forward(x, y):
    e = p["embed"][x].reshape(len(x), -1)
    h = np.tanh(e @ p["in"] + p["in_b"])
    z = h @ p["out"] + p["out_b"]
    z -= z.max(1, keepdims=True)
    q = np.exp(z)
    q /= q.sum(1, keepdims=True)
    return e, h, q, -np.log(q[np.arange(len(y)), y] + 1e-12).mean()


def windows(source, places):
    return source[places[:, None] + np.arange(C)], source[places + C]


def evaluate():
    places = np.linspace(0, len(held_out) - C - 1, 4000).astype(int)
    return forward(*windows(held_out, places))[3]


for step in range(1, given.steps + 1):
    x, y = windows(train, rng.integers(0, len(train) - C - 1, B))
    e, h, q, loss = forward(x, y)
    q[np.arange(B), y] -= 1
    q /= B
    g = {"out": h.T @ q, "out_b": q.sum(0)}
    dh = (q @ p["out"].T) * (1 - h**2)
    g |= {"in": e.T @ dh, "in_b": dh.sum(0), "embed": np.zeros_like(p["embed"])}
    np.add.at(g["embed"], x, (dh @ p["in"].T).reshape(B, C, D))
    lr = given.lr * min(1.0, 10 * step / given.steps) * (1 - (step - 1) / given.steps)
    for key in p:
        m[key] += 0.1 * (g[key] - m[key])
        v[key] += 0.01 * (g[key] ** 2 - v[key])
        p[key] -= lr * (m[key] / (1 - 0.9**step)) / (np.sqrt(v[key] / (1 - 0.99**step)) + 1e-8)
    if step % (given.steps // 4) == 0 and step < given.steps:
        print(f"step {step}: train_loss {loss:.4f}")
print(f"step {given.steps}: val_loss {evaluate():.5f}")
