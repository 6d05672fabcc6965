import argparse, os, random, sys
p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--rate", type=float, default=1.0)
a = p.parse_args()
random.seed(a.seed)
low = 9
for step in (0, 50, 100, 150):
    bpb = 1.2 - 0.001 * step + random.gauss(0, 0.004) + 0.3 * (step == 150)
    low = min(low, bpb)
    print(f"Step {step:05d} | Validation bpb: {bpb:.5f}")
print("Peak memory: 10.1MiB")
print(f"Lowest validation bpb: {low:.5f}")
