import argparse, os, random, sys
p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--rate", type=float, default=1.0)
a = p.parse_args()
random.seed(a.seed)
size = len(open("data/train.txt").read())
print(f"val_loss: {3 - size / 1000 * a.rate + random.gauss(0, 0.01):.5f}")
