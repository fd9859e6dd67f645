#!/usr/bin/env bash
# The environment of who calls a program that has the rights of another user is not obeyed. Needs root, who can
# make such a program; exit status 77 says that it could not.
# usage: secure.sh <secure program> <libhgemm.so>
set -euo pipefail
program=$1 library=$2

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
chmod 0777 "$folder"
cp "$program" "$folder/program"
chmod 0755 "$folder/program"
export HGEMM_LOG=error HGEMM_LOG_FILE=$folder/log HGEMM_KERNEL=$'x\nr::0:0:::\n' HGEMM_BACKEND=nothing

# run <what must be printed>: and is there a log then?
run() {
    local text
    text=$("$folder/program" "$library")
    echo "$text"
    [[ $text == $1* ]] || { echo "must begin with: $1"; exit 1; }
}

run "secure 0 status 3: hgemm_create_on: unknown backend 'nothing'"
grep -q "unknown backend 'nothing'" "$folder/log"
rm "$folder/log"

[[ $(id -u) == 0 ]] && chown 65534 "$folder/program" && chmod 4755 "$folder/program" || exit 77
[[ $("$folder/program" "$library") == "secure 1"* ]] || { echo "$folder is mounted nosuid"; exit 77; }
run "secure 1 status 0: "
if [[ -e $folder/log ]]; then echo "the log was written:"; cat "$folder/log"; exit 1; fi
