"""Stands in for a training script: takes no time, trains nothing, and ends with the summary of autoresearch's train.py.

It is for trying a loop out before it is given a GPU. Each entry of CHANGES is what a change takes off val_bpb; the seed
is fixed in the code, as there.
"""

import math
import random
import time

CHANGES = []
NOISE = 0.01

random.seed(42)
began = time.time()
val_bpb = 1 - sum(CHANGES) + random.gauss(0, NOISE)
for step in range(0, 401, 40):
    loss = val_bpb + 2.4 * math.exp(-step / 60) + random.gauss(0, NOISE)
    print(f"step {step:05d} ({step / 4:.1f}%) | loss: {loss:.4f}")

print("---")
print(f"val_bpb:          {val_bpb:.6f}")
print(f"training_seconds: {time.time() - began:.1f}")
print(f"total_seconds:    {time.time() - began:.1f}")
print("peak_vram_mb:     1536.0")
print("mfu_percent:      0.00")
print("total_tokens_M:   0.0")
print("num_steps:        400")
print("num_params_M:     0.0")
print("depth:            8")
