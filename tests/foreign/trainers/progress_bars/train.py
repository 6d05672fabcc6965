import argparse, os, random, sys
p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--rate", type=float, default=1.0)
a = p.parse_args()
random.seed(a.seed)
for step in range(1, 6):
    loss = 3 - 0.1 * step * a.rate + random.gauss(0, 0.004)
    sys.stderr.write(f"\r{20 * step}%|{'#' * step:<5}| {step}/5 [00:00<00:00, 9.1it/s, loss={loss + 1:.3f}]")
    if step == 5:
        print(f"\nval_loss={loss:.5f}")
