#!/bin/sh
# Sets up PyTorch for CPU use in the virtual environment FOLDER, unless it is there, and compares it with ckbench (peer.py).
#
# Usage: suite/peers/peer.sh FOLDER [peer.py's arguments]     e.g. suite/peers/peer.sh ~/peer mlp resnet18 --amp bf16
set -eu
case ${1-} in
'' | -*)
	sed -n '2,4s/^# \{0,1\}//p' "$0" >&2
	exit 2
	;;
esac
folder=$1
shift
here=$(dirname "$0")

if [ ! -x "$folder/bin/python" ]; then
	echo "peer.sh: installing PyTorch into $folder" >&2
	python3 -m venv "$folder"
	# PyPI's build names several gigabytes of GPU libraries. It starts without most: these few it wants to find.
	"$folder/bin/pip" -q install --no-deps torch==2.13.0 nvidia-cufile nvidia-cusparselt-cu13==0.8.1 \
		nvidia-nvshmem-cu13==3.4.5 nvidia-nccl-cu13==2.29.7
	"$folder/bin/pip" -q install numpy filelock typing-extensions sympy networkx jinja2 fsspec setuptools
fi
"$folder/bin/python" -c 'import torch' || {
	echo "peer.sh: PyTorch does not start from $folder. PyPI's build needs the CUDA toolkit's libraries to be found (LD_LIBRARY_PATH)." >&2
	exit 3
}
exec python3 "$here/peer.py" --python "$folder/bin/python" "$@"
