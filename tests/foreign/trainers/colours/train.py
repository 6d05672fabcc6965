import argparse, os, random, sys
p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--rate", type=float, default=1.0)
a = p.parse_args()
random.seed(a.seed)
low = 9
for step in range(5):
    loss = 3 - 0.2 * step * float(open("rate.txt").read()) + random.gauss(0, 0.003)
    on, off = ("\x1b[1;32m", "\x1b[0m") if loss < low else ("", "")
    low = min(low, loss)
    print(f"step {step} val_loss: {on}{loss:.4f}{off}")
