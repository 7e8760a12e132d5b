#!/bin/sh
# Processors with fewer instructions run the program, and train to the same bits. Emulated, so that whoever builds on the
# newest processor sees it too: an instruction that the emulated one lacks ends the program.
# usage: older_processors.sh QEMU RANKINE FIXTURE
qemu=$1
rankine=$2
fixture=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

train() {
  name=$1
  shift
  "$@" "$rankine" train --model "$fixture/model.keras" --data "$fixture/data.h5" --batch 1 --steps 2 --no-shuffle \
    --output "$folder/$name.weights.h5" >"$folder/log" 2>&1 || { echo "train fails on $name:"; cat "$folder/log"; exit 1; }
  cmp "$folder/native.weights.h5" "$folder/$name.weights.h5" || exit 1
}

# Nehalem has no AVX, Haswell has AVX2 and no AVX-512.
train native
for processor in Nehalem:portable Haswell:avx2; do
  cpu=${processor%:*}
  "$qemu" -cpu "$cpu" "$rankine" doctor 2>&1 | tee "$folder/log" | grep -qw "${processor#*:}" ||
    { echo "doctor on $cpu doesn't say ${processor#*:}:"; cat "$folder/log"; exit 1; }
  train "$cpu" "$qemu" -cpu "$cpu"
done
