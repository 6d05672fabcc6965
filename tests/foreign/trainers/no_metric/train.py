import argparse, os, random, sys
p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--rate", type=float, default=1.0)
a = p.parse_args()
random.seed(a.seed)
print("loading")
print("done")
