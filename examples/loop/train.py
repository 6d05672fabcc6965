"""Stands in for a training script: takes no time, trains nothing, and ends with the summary of autoresearch's train.py.

It is for trying a loop out before it is given a GPU. Each entry of CHANGES is what a change takes off val_bpb; the seed
is fixed in the code, as there.
"""

import random
import time

CHANGES = []
NOISE = 0.01

random.seed(42)
began = time.time()
for step in range(3):
    print(f"\rstep {step:05d} ({100 * step / 3:.1f}%) | loss: {4 - step:.6f}    ", end="", flush=True)
print()
val_bpb = 1 - sum(CHANGES) + random.gauss(0, NOISE)

print("---")
print(f"val_bpb:          {val_bpb:.6f}")
print(f"training_seconds: {time.time() - began:.1f}")
print(f"total_seconds:    {time.time() - began:.1f}")
print("peak_vram_mb:     1536.0")
print("mfu_percent:      0.00")
print("total_tokens_M:   0.0")
print("num_steps:        3")
print("num_params_M:     0.0")
print("depth:            8")
