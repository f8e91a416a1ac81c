#!/bin/sh
# Runs a ckbench over the lines of inputs/smoke.txt and reports in TAP. Meant for a build with sanitizers: they cannot see into
# Criterion's forked tests, so they watch the plain program here.
#
# Usage: suite/smoke.sh PROGRAM     e.g. suite/smoke.sh build-asan/ckbench
set -u
program=$(realpath "$1")
list=$(dirname "$(realpath "$0")")/inputs/smoke.txt

# A finding's exit status is none of ckbench's own. gcc's detection of stack use after return breaks the alignment of vectors.
export ASAN_OPTIONS="exitcode=99:detect_stack_use_after_return=0:strict_string_checks=1${ASAN_OPTIONS:+:$ASAN_OPTIONS}"
export UBSAN_OPTIONS="halt_on_error=1:exitcode=99:print_stacktrace=1${UBSAN_OPTIONS:+:$UBSAN_OPTIONS}"
export OMP_WAIT_POLICY=passive

folder=$(mktemp -d) || exit 3
trap 'rm -rf "$folder"' EXIT
cd "$folder" || exit 3

count=0
failed=0
while read -r expected arguments; do
	case $expected in
	'' | '#'*) continue ;;
	esac
	count=$((count + 1))
	# shellcheck disable=SC2086 # a list of words
	"$program" $arguments >out 2>err </dev/null
	status=$?
	if [ "$status" -eq "$expected" ] && { [ "$status" -eq 0 ] || [ -s err ]; }; then
		echo "ok $count - ckbench $arguments"
	else
		failed=$((failed + 1))
		echo "not ok $count - ckbench $arguments: exit status $status, expected $expected"
		tail -n 60 err | sed 's/^/# /'
	fi
done <"$list"
echo "1..$count"
[ "$failed" -eq 0 ] && [ "$count" -gt 0 ]
