#!/bin/bash
python train.py --seed $1
echo "ended on $(hostname)"
