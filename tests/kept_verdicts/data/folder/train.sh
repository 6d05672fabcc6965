worse=0
while [ $# -gt 0 ]; do case $1 in --seed) seed=$2 ;; --worse) worse=$2 ;; esac; shift 2; done
GAIN=100000
noise=$(( (seed * 41 % 101 - 50) * 200 ))
echo "step 10: train loss 3.$(( seed % 7 ))"
value=$(( 3000000 + worse - GAIN + noise ))
echo "val_loss: $(( value / 1000000 )).$(printf %06d $(( value % 1000000 )))"
