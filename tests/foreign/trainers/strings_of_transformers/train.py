import argparse, os, random, sys
p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--rate", type=float, default=1.0)
a = p.parse_args()
random.seed(a.seed)
for epoch in (1, 2):
    loss = 2.5 - 0.3 * epoch * float(open("rate.txt").read()) + random.gauss(0, 0.005)
    print({"eval_loss": f"{loss:.4f}", "eval_runtime": "0.01", "epoch": str(epoch)})
print({"train_runtime": "1.23", "train_loss": "2.2", "epoch": "2"})
