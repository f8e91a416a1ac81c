#!/bin/sh
# Sweeps the cases of inputs/reference.txt and leaves their records and TSVs in a folder, with a README.md of what ran where: a side for
# ckbench compare. Run it on an idle machine; with 20 seconds a case it takes some three minutes.
#
# Usage: suite/reference.sh PROGRAM FOLDER [SECONDS]     e.g. suite/reference.sh build/ckbench results/reference
set -u
if [ $# -lt 2 ]; then
	echo "usage: suite/reference.sh PROGRAM FOLDER [SECONDS], e.g. suite/reference.sh build/ckbench results/reference" >&2
	exit 2
fi
program=$1
folder=$2
seconds=${3:-20}
list=$(dirname "$0")/inputs/reference.txt

if ! command -v "$program" >/dev/null; then
	echo "reference.sh: there is no program $program; build it first, or name another" >&2
	exit 2
fi
if ls "$folder"/*.json >/dev/null 2>&1; then
	echo "reference.sh: $folder holds records already; name another folder, or remove them" >&2
	exit 2
fi
mkdir -p "$folder" || exit 3

while read -r arguments; do
	case $arguments in
	'' | '#'*) continue ;;
	esac
	# shellcheck disable=SC2086 # a list of words
	"$program" sweep $arguments --seconds "$seconds" --out "$folder" --quiet </dev/null || exit
done <"$list"
rm -f "$folder"/*.svg "$folder"/*.png # they can be drawn again

{
	echo "# Reference records"
	echo
	echo "Of the cases in \`suite/inputs/reference.txt\`, $(date -u +%F), by"
	echo
	echo "    suite/reference.sh $program $folder $seconds"
	echo
	echo "on this machine:"
	echo
	"$program" env | sed 's/^/    /'
	echo
	echo "Another machine or build against it: the same command there with a folder of its own, then \`ckbench compare $folder FOLDER\`."
} >"$folder/README.md"
