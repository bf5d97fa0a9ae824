#!/bin/sh
# A whole experiment from a shell: which two of email, coupon and letter make a customer buy?
#
#   sh examples/experiment.sh
#
# It needs the dobandit command, and python3 to take JSON apart. Everything happens in a folder that is removed at the
# end. In earnest, hours or days lie between `ask` and `tell`, and several machines may do both at once.
set -eu

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
export DOBANDIT_STORAGE=sqlite:///shop.db # where the experiment is kept; or give --storage to each command

# Who causes what. The weights of the arrows are not known: the experiment is to find out.
cat > funnel.txt <<'GRAPH'
target: buy
email -> visit
coupon -> visit
letter -> visit
coupon -> buy
visit -> buy
GRAPH

# The world, which dobandit does not see. world EMAIL COUPON LETTER: empty where nobody set it, as customers do not
# send themselves letters, and then it is 0. Prints what was seen, as `tell` takes it.
random=7
chance() { # succeeds in $1 cases of 100
    random=$(((random * 1103515245 + 12345) % 2147483648))
    [ $((random / 65536 % 100)) -lt "$1" ]
}
world() {
    email=${1:-0} coupon=${2:-0} letter=${3:-0} visit=0 buy=0
    if chance $((10 + 45 * email + 15 * coupon + 5 * letter)); then visit=1; fi
    if chance $((5 + 50 * visit + 30 * coupon)); then buy=1; fi
    seen="email=$email coupon=$coupon letter=$letter visit=$visit buy=$buy"
}

# One line per trial from the JSON of `ask -n`: its number, and 1 or - for email, coupon and letter.
lines() {
    python3 -c '
import json, sys
for trial in json.load(sys.stdin):
    print(trial["trial"], *(trial["do"].get(name, "-") for name in ("email", "coupon", "letter")))'
}

# At most two of the three are set in a round: `visit` happens, nobody can set it.
dobandit experiment create shop funnel.txt -k 2 --forbid visit --policy blm-lr:radius_scale=0.1 --seed 1

# Rounds are asked for in batches, for customers who are served at the same time.
for size in 5 3; do
    echo
    echo "$size rounds"
    dobandit experiment ask shop -n "$size" --json | lines > batch.txt
    while read -r number email coupon letter; do
        case $number in
        3) dobandit experiment fail shop "$number" "the server was down" ;; # tried, but nothing was seen
        4) dobandit experiment abandon shop "$number" ;;                    # nobody will try it
        *)
            world "${email#-}" "${coupon#-}" "${letter#-}"
            echo "trial $number: saw $seen"
            dobandit experiment tell shop "$number" $seen < /dev/null # unquoted: one word per variable
            ;;
        esac
    done < batch.txt
done

echo
dobandit experiment recommend shop
echo
dobandit experiment export shop shop.csv
cut -d, -f1-3 shop.csv # number, state and source of each trial
dobandit experiment delete shop --yes
