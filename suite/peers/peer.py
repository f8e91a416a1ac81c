"""PyTorch and ckbench on the same models, threads and machine, one after the other in one session; see README.md.

Times differ by machine and by hour, so only runs that alternate can be compared: each round visits every side once, each in a
fresh process, and the order turns round every time."""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
MIB = 1 << 20

# PyTorch's ways of running a model that are worth a try, as flags of step.py.
MODES = {
    "mlp": ["", "--compile"],
    "cnn": ["", "--channels-last", "--compile --channels-last"],
    "transformer": ["", "--fused-attention", "--compile --fused-attention"],
}
# Case of models.py: its family above, and the same case for ckbench.
CASES = {
    "mlp": ("mlp", "mlp-wide"),
    "resnet18": ("cnn", "resnet18"),
    "resnet20": ("cnn", "resnet20"),
    "resnet50": ("cnn", "resnet50"),
    "gpt-char": ("transformer", "gpt-char"),
    "gpt-mini": ("transformer", "gpt-mini"),
    "gpt2": ("transformer", "gpt2"),
}
# What --amp asks of both sides, in words.
ARITHMETIC = {"off": "float32", "bf16": "bfloat16 by autocast"}
# A mode this much slower than the best one after the first round is not run again.
HOPELESS = 1.2


def arguments():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", metavar="MODEL", help=f"default: mlp resnet18 gpt-char; all: {' '.join(CASES)}")
    parser.add_argument("--python", default=sys.executable, help="a Python that has PyTorch")
    parser.add_argument("--ckbench", default="build/ckbench")
    parser.add_argument("--amp", default="off", choices=ARITHMETIC, help="bf16: both sides in mixed precision")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--segments", default="2,4,8", help="checkpointed variants; empty: none")
    parser.add_argument("--json", type=Path, help="also write all that was measured to this file")
    options = parser.parse_args()
    options.models = options.models or ["mlp", "resnet18", "gpt-char"]
    unknown = [name for name in options.models if name not in CASES]
    if unknown:
        parser.error(f"no model {', '.join(unknown)}; there are {' '.join(CASES)}")
    return options


def run(command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        sys.exit(f"peer.py: exit status {done.returncode} of: {' '.join(map(str, command))}\n{done.stderr[-2000:]}")
    return done.stdout


def torch(options, model, flags):
    """One process of PyTorch: its step.py result."""
    command = [options.python, HERE / "step.py", model, "--amp", options.amp, "--threads", str(options.threads)]
    out = run([*command, *flags.split()])
    return json.loads(out.splitlines()[-1])


def ckbench(options, model, plans):
    """One process of ckbench: a result like step.py's for each plan."""
    with tempfile.TemporaryDirectory() as out:
        command = [options.ckbench, "sweep", CASES[model][1], "--plans", ",".join(plans), "--threads", str(options.threads)]
        if options.amp != "off":
            command += ["--amp", options.amp]
        record = json.loads(run([*command, "--seconds", "10", "--out", out, "--json", "-", "--quiet"]))
    bad = [f"{p['plan']}: {p['status']} ({p.get('reason')})" for p in record["points"] if p["status"] != "ok"]
    if bad:
        sys.exit(f"peer.py: {model}: ckbench did not measure {'; '.join(bad)}")
    return {
        p["plan"]: {"median": p["time"]["median"], "min": p["time"]["min"], "peak": p["memory"]["device_peak"]}
        for p in record["points"]
    }


def alternate(options, model):
    """Results by side ("ckbench" or a mode of PyTorch), a list each, over the rounds."""
    sides = {mode: lambda mode=mode: torch(options, model, mode) for mode in MODES[CASES[model][0]]}
    sides["ckbench"] = lambda: ckbench(options, model, ["none"])["none"]
    results = {side: [] for side in sides}
    for number in range(options.rounds):
        print(f"{model}: round {number + 1} of {options.rounds}", file=sys.stderr)
        for side in reversed(sides) if number % 2 else list(sides):
            results[side].append(sides[side]())
        if number == 0:
            best = min(results[mode][0]["median"] for mode in sides if mode != "ckbench")
            sides = {s: f for s, f in sides.items() if s == "ckbench" or results[s][0]["median"] <= HOPELESS * best}
    return results


def combine(results):
    """One row of a table out of one side's results: the median of medians, the least time and the highest peak."""
    return {
        "median": statistics.median(r["median"] for r in results),
        "min": min(r["min"] for r in results),
        "peak": max(r["peak"] for r in results),
        "rounds": len(results),
    }


def print_row(name, row, note=""):
    print(f"  {name:<44} {1e3 * row['median']:9.1f} {1e3 * row['min']:9.1f} {row['peak'] / MIB:9.0f}  {note}".rstrip())


def print_heading(text):
    print(f"\n{text}\n  {'':<44} {'median ms':>9} {'least ms':>9} {'peak MiB':>9}")


def named(mode):
    return "PyTorch " + (mode.replace("--", "") or "eager")


def compare_plain(options, model):
    """Nothing checkpointed: prints the table, returns its rows by side."""
    rows = {side: combine(results) for side, results in alternate(options, model).items()}
    best = min(row["median"] for side, row in rows.items() if side != "ckbench")
    print_heading(f"{model}: {ARITHMETIC[options.amp]}, {options.threads} threads, everything stored")
    for side, row in rows.items():
        if side != "ckbench":
            print_row(named(side), row, "" if row["rounds"] == options.rounds else "(first round only)")
    print_row("ckbench none", rows["ckbench"], f"{best / rows['ckbench']['median']:.2f} times as fast as PyTorch's best")
    return rows


def compare_checkpointed(options, model, plain):
    """Rows by side and plan. A side's overheads are over its own plan none of the same rounds."""
    segments = [int(k) for k in options.segments.split(",")]
    mode = min((m for m in MODES[CASES[model][0]] if "--compile" not in m), key=lambda m: plain[m]["median"])
    flags = {"none": mode, **{f"segments {k}": f"{mode} --segments {k}" for k in segments}}
    plans = ["none", *(f"{planner}:{k}" for planner in ("torch", "uniform") for k in segments)]
    results = {named(mode): {plan: [] for plan in flags}, "ckbench": {plan: [] for plan in plans}}
    for number in range(options.rounds):
        print(f"{model}, checkpointed: round {number + 1} of {options.rounds}", file=sys.stderr)
        for plan in flags:
            results[named(mode)][plan].append(torch(options, model, flags[plan]))
        for plan, result in ckbench(options, model, plans).items():
            results["ckbench"][plan].append(result)

    print_heading(f"{model}: {ARITHMETIC[options.amp]}, checkpointed (torch:K is checkpoint_sequential's own partition)")
    sides = {side: {plan: combine(r) for plan, r in by_plan.items()} for side, by_plan in results.items()}
    for side, rows in sides.items():
        for plan, row in rows.items():
            slower = 100 * (row["median"] / rows["none"]["median"] - 1)
            larger = (row["peak"] - rows["none"]["peak"]) / MIB
            print_row(f"{side} {plan}", row, "" if plan == "none" else f"{slower:+.0f} % time, {larger:+.0f} MiB")
    return sides


def main():
    options = arguments()
    measured = {}
    for model in options.models:
        rows = compare_plain(options, model)
        measured[model] = {"amp": options.amp, "plain": rows}
        if options.segments:
            measured[model]["checkpointed"] = compare_checkpointed(options, model, rows)
    if options.json:
        options.json.write_text(json.dumps(measured, indent=1) + "\n")


main()
