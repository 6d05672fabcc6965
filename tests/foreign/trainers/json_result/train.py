import argparse, os, random, sys
p = argparse.ArgumentParser()
p.add_argument("--seed", type=int, default=0)
p.add_argument("--rate", type=float, default=1.0)
a = p.parse_args()
random.seed(a.seed)
import json
os.makedirs("out", exist_ok=True)
with open("out/result.json", "w") as file:
    json.dump({"eval": {"accuracy": 0.7 + 0.05 * a.rate + random.gauss(0, 0.002)}}, file)
