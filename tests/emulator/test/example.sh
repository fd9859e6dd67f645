#!/usr/bin/env bash
# The examples as their first lines tell to build and run them: the report names the line of the source.
#   example.sh <ptxrace> <nvcc> <python3> <folder of the examples> <folder to work in>
set -euo pipefail
ptxrace=$1 nvcc=$2 python=$3 examples=$4 work=$5
rm -rf "$work" && mkdir -p "$work"
cd "$work"
ptx_alone=(-gencode "arch=compute_80,code=compute_80")  # compiles faster
sed 's/__syncwarp()/__syncthreads()/; s/^    for (int width/    __syncthreads();\n&/' "$examples/race.cu" >right.cu
sed 's/sums\[blockIdx.x\] = /sums[1 << 20 | blockIdx.x] = /' "$examples/race.cu" >outside.cu
"$nvcc" "${ptx_alone[@]}" "$examples/race.cu" -o static &
"$nvcc" "${ptx_alone[@]}" -lineinfo -cudart shared right.cu -o right &
"$nvcc" "${ptx_alone[@]}" -lineinfo -cudart shared outside.cu -o outside &
"$nvcc" -lineinfo -cudart shared "$examples/race.cu" -o race
wait
read_at=$(grep -n 'tile\[threadIdx.x\] +=' "$examples/race.cu" | cut -d: -f1)
written_at=$(grep -n 'tile\[threadIdx.x\] = ' "$examples/race.cu" | cut -d: -f1)
for architecture in sm_90 sm_120; do
    status=0
    "$ptxrace" run --arch $architecture --json reports.json ./race >log 2>&1 || status=$?
    [ $status = 99 ] || { cat log; echo "status $status, expected 99"; exit 1; }
    "$python" - reports.json "$examples/race.cu" "$read_at" "$written_at" <<'END'
import json, sys
document = json.load(open(sys.argv[1]))
races = [r for r in document["reports"] if r.get("kind") == "race"]
lines = {(s["file"], s["line"]) for r in races for s in r["source"]}
assert (sys.argv[2], int(sys.argv[3])) in lines or (sys.argv[2], int(sys.argv[4])) in lines, lines
text = races[0]["text"]
assert f"race.cu:{sys.argv[3]})" in text and f"race.cu:{sys.argv[4]})" in text, text
assert document["status"] == 0 and document["kernels"] == 1 and document["defects"] == len(
    [r for r in document["reports"] if r["class"] == "defect"]) > 0, document
END
done
[ "$("$ptxrace" run --defect-status 3 ./race >/dev/null 2>&1; echo $?)" = 3 ]
grep -q "tile\[threadIdx.x\]" log || { cat log; echo "the report does not quote the source"; exit 1; }

# Mended, there is nothing to report.
"$ptxrace" run ./right >log 2>&1 && grep -q 'sums 64 64 64 64' log && grep -q '1 kernel: 0 faults, 0 defects' log ||
    { cat log; echo "the mended example is not right"; exit 1; }

# Faults count, and come first.
status=0
"$ptxrace" run ./outside >log 2>&1 || status=$?
[ $status = 99 ] && grep -q '^fault: out-of-bounds' log && grep -q '(outside.cu:' log &&
    [[ $(grep -oE '^fault|\(defect\)' log | tr '\n' ' ') = "fault (defect)"* ]] || { cat log; exit 1; }

# NVIDIA's static runtime, which nvcc links by default.
status=0
"$ptxrace" run ./static >log 2>&1 || status=$?
[ $status = 125 ] && grep -q 'nvcc -cudart shared' log || { cat log; exit 1; }
