#!/usr/bin/env bash
# ptxrace as it is called, on programs that need no nvcc: what it exits with, and what it says.
#   command.sh <ptxrace> <a program that uses the runtime> <C compiler> <folder to work in>
set -euo pipefail
ptxrace=$1 program=$2 cc=$3 work=$4
rm -rf "$work" && mkdir -p "$work"
problems=0
# expect <status> <words> <command>...: its status, and words of what it prints
expect() {
    local expected=$1 words=$2 status=0 text
    shift 2
    text=$("$@" 2>&1) || status=$?
    if [ "$status" != "$expected" ] || [[ $text != *"$words"* ]]; then
        printf '%s\n  status %s, expected %s and "%s":\n%s\n' "$*" "$status" "$expected" "$words" "$text"
        problems=1
    fi
}

expect 0 sm_121 "$ptxrace" devices
expect 0 "wgmma.mma_async.sp" "$ptxrace" --refused
expect 0 cudaLaunchCooperativeKernel "$ptxrace" --refused
expect 0 cuGetExportTable "$ptxrace" --refused
[ -e "$("$ptxrace" libraries)/libcuda.so.1" ] || { echo "libraries: no libcuda.so.1 there"; problems=1; }

# The program's own status, and what is not the program's.
expect 0 "did not initialise the CUDA driver" "$ptxrace" run sh -c 'exit 0'
expect 7 "" "$ptxrace" run sh -c 'exit 7'
expect 143 "" "$ptxrace" run sh -c 'kill -TERM $$'
expect 0 "--arch -- x" "$ptxrace" run echo --arch -- x
expect 0 "--help" "$ptxrace" run -- echo --help
expect 0 "--arch=x -- y" "$ptxrace" run --quiet --arch=sm_80 -- echo --arch=x -- y
expect 125 "nonsense" "$ptxrace" run --nonsense true
expect 0 "Then comes the program" "$ptxrace" run --help
mkdir -p "$work/folder/true"
expect 3 "" env PATH="$work/folder:$PATH" "$ptxrace" run sh -c 'exit 3'
PATH="$work/folder:$PATH" expect 0 "" "$ptxrace" run true
expect 127 "no program 'no-such-program'" "$ptxrace" run no-such-program
touch "$work/no_program"
expect 126 "cannot execute" "$ptxrace" run "$work/no_program"
expect 125 "a program" "$ptxrace" run
expect 125 "--check" "$ptxrace" run --check 9 true
expect 0 "EMU_ARCH=sm_120 EMU_SEED=5 EMU_CHECK=3 EMU_OVERLAP=1 EMU_SM_COUNT=9 EMU_STRICT=defects" \
    "$ptxrace" run --quiet --arch sm_120 --seed 5 --check 3 --overlap --sms 9 --strict defects sh -c \
    'echo EMU_ARCH=$EMU_ARCH EMU_SEED=$EMU_SEED EMU_CHECK=$EMU_CHECK EMU_OVERLAP=$EMU_OVERLAP EMU_SM_COUNT=$EMU_SM_COUNT EMU_STRICT=$EMU_STRICT'

# What cannot find the emulator.
printf 'int main(void) { return 3; }\n' >"$work/three.c"
"$cc" "$work/three.c" -static -o "$work/static" 2>/dev/null &&
    expect 125 "is linked statically" "$ptxrace" run "$work/static"
"$cc" "$work/three.c" -Wl,--disable-new-dtags,-rpath,/elsewhere -o "$work/rpath"
expect 3 "has an RPATH, /elsewhere" "$ptxrace" run "$work/rpath"
printf 'int absent(void) { return 0; }\n' >"$work/absent.c"
"$cc" -shared "$work/absent.c" -Wl,-soname,libcudart.so.99 -o "$work/libabsent.so"
printf 'int absent(void); int main(void) { return absent(); }\n' >"$work/needs.c"
"$cc" "$work/needs.c" -L"$work" -labsent -o "$work/needs"
expect 125 "needs libcudart.so.99" "$ptxrace" run "$work/needs"
printf 'const char name[] = "/cudart.shm.%%x"; int main(void) { return name[0] == 0; }\n' >"$work/runtime.c"
"$cc" "$work/runtime.c" -o "$work/runtime"
expect 125 "nvcc -cudart shared" "$ptxrace" run "$work/runtime"
expect 0 "nvcc -cudart shared" "$ptxrace" run --anyway "$work/runtime"

expect 0 "0 defects" "$ptxrace" run --arch sm_80 --json "$work/reports.json" "$program"
grep -q '"class": "device", "kind": "sm_80"' "$work/reports.json" || { cat "$work/reports.json"; problems=1; }

# A file that cannot be written is told before the program runs.
expect 125 "cannot write $work/no_folder/reports.json" "$ptxrace" run --json "$work/no_folder/reports.json" touch "$work/ran"
[ ! -e "$work/ran" ] || { echo "a program ran whose reports cannot be written"; problems=1; }

# What ends ptxrace ends the program, and leaves reports and no temporary file.
mkdir "$work/temporary"
rm "$work/reports.json"
TMPDIR=$work/temporary "$ptxrace" run --quiet --json "$work/reports.json" \
    sh -c 'touch "$1"; exec sleep 60' sh "$work/started" &
until [ -e "$work/started" ]; do sleep 0.1; done
kill -TERM $!
status=0
wait $! || status=$?
[ $status = 143 ] || { echo "status $status after SIGTERM"; problems=1; }
grep -q '"status": 143' "$work/reports.json" || { echo "no reports after SIGTERM"; problems=1; }
[ -z "$(ls "$work/temporary")" ] || { echo "SIGTERM left a file: $(ls "$work/temporary")"; problems=1; }
exit $problems
