import argparse, os, random, sys
p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--rate", type=float, default=1.0)
a = p.parse_args()
random.seed(a.seed)
for step in range(0, 1000, 100):
    loss = 4 - 0.001 * step * a.rate + random.gauss(0, 0.01)
    print(f"step {step} | val_loss {loss:.5f}", flush=True)
    if step == 600 and os.path.exists("broken"):
        raise RuntimeError("CUDA error: an illegal memory access was encountered")
