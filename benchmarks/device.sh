#!/usr/bin/env bash
# Everything that only a GPU can tell, in one command and under eight minutes, without a network:
#
#     benchmarks/device.sh                # on a machine with an NVIDIA GPU, PyTorch and Triton
#     benchmarks/device.sh --quick        # the same code on a CPU, in a minute
#
# Writes at most eight files to $OUT (by default _build/device), each whole after every step, so
# that nothing is lost at a time limit. benchmarks/README.md says what to do with them.
#
# WHEELS names a folder of wheels for what the machine lacks (automata-lib, say), and of
# mamba-ssm's with its kernels, if there is one; compiled kernels may also lie there as they are.
set -euo pipefail
cd "$(dirname "$0")/.."
export OUT="${OUT:-_build/device}" WHEELS="${WHEELS:-.whl}"
python="${PYTHON:-$([[ -x .venv/bin/python ]] && echo .venv/bin/python || echo python3)}"
mkdir -p "$OUT"
if compgen -G "$WHEELS/*.whl" >/dev/null; then
  site="$(mktemp -d)"
  trap 'rm -rf "$site"' EXIT
  "$python" -m pip install -q --no-index --no-deps --no-compile --target "$site" "$WHEELS"/*.whl
fi
export PYTHONPATH="src:${site:+$site:}$WHEELS:benchmarks${PYTHONPATH:+:$PYTHONPATH}"
PYTHONUNBUFFERED=1 "$python" benchmarks/device.py "$@" 2>&1 | tee "$OUT/log.txt"
