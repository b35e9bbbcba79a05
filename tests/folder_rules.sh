#!/usr/bin/env bash
# Data flows one way: inject/ includes nothing of report/ and nothing of PyTorch; report/ includes only the format of
# inject/, and no CUDA; nvtx_hooks/ speaks to inject/ through NVTX alone.
set -euo pipefail
cd "$(dirname "$0")/.."
failed=0

# forbid FOLDER PATTERN REASON [ALLOWED]
forbid() {
  [[ -d $1 ]] || return 0
  if grep -rnE "#include [\"<]($2)" "$1" | grep -vE "${4:-^$}"; then
    echo "$1: $3"
    failed=1
  fi
}

forbid inject '(report|nvtx_hooks)/|torch|ATen|c10' 'may not include this'
forbid nvtx_hooks '(report|inject)/|cupti' 'may not include this'
forbid report '(inject|nvtx_hooks)/|cuda|cupti|nvtx3' 'may include inject/record.h only' '"inject/record.h"'
exit $failed
